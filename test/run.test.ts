import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";

// The runner must not be able to pass by accident: each way a test file can go wrong is seen.

function runFixtures(
  files: Readonly<Record<string, string>>,
  more: NodeJS.ProcessEnv = {},
): { status: number | null; output: string } {
  const root = mkdtempSync(join(tmpdir(), "kubelet-run-"));
  try {
    for (const [name, text] of Object.entries(files)) {
      const path = join(root, name.includes("/") ? name : `src/${name}`);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    const { KUBELET_TEST_CHILD: _child, KUBELET_TEST_PART: _part, NODE_TEST_CONTEXT: _context, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", join(import.meta.dirname, "run.ts")],
      { env: { ...env, KUBELET_TEST_ROOT: root, ...more }, encoding: "utf8", timeout: 60_000 },
    );
    return { status, output: stdout + stderr };
  } finally {
    rmSync(root, { recursive: true });
  }
}

const header = 'import { after, before, test, describe } from "node:test";\n';

test("a run of good files counts every test and passes; hooks of a file are its own", () => {
  const { status, output } = runFixtures(
    {
      "one.test.ts": `${header}test("a", () => {}); describe("s", () => { test("b", async () => {}); });`,
      "two.test.ts": `${header}test("c", () => {}); test("left out", { skip: "no such kernel" }, () => {});`,
      "three.root.test.ts": `${header}test("needs root", () => { throw new Error("not here"); });`,
      "umask-a.test.ts": `${header}let mask = 0;
        before(() => { mask = process.umask(0o077); });
        after(() => { process.umask(mask); });
        test("strict", () => { if (process.umask() !== 0o077) throw new Error("before did not run"); });`,
      "umask-b.test.ts": `${header}test("usual", () => {
        if (process.umask() === 0o077) throw new Error("another's umask");
      });`,
    },
    { KUBELET_STRICT: "", KUBELET_PROPERTY_SEED: "123" },
  );
  assert.match(output, /^5 passed, 0 failed, 1 skipped \(4 files/m);
  assert.match(output, /^skipped src\/two\.test\.ts: left out: no such kernel$/m);
  assert.match(output, /^property seed 123 /m);
  assert.equal(status, 0);
});

test("the parts of a run are all its files, each once", () => {
  const names = ["a", "b", "c"];
  const files = Object.fromEntries(names.map((name) => [`${name}.test.ts`, `${header}test("${name}", () => {});`]));
  for (const [KUBELET_TEST_PART, count] of [
    ["1/2", 2],
    ["2/2", 1],
  ] as const) {
    const { status, output } = runFixtures(files, { KUBELET_TEST_PART });
    assert.match(output, new RegExp(`^${count} passed, 0 failed \\(${count} files`, "m"));
    assert.equal(status, 0);
  }
  const { status, output } = runFixtures(files, { KUBELET_TEST_PART: "3/2" });
  assert.match(output, /KUBELET_TEST_PART="3\/2": must be PART\/PARTS/);
  assert.notEqual(status, 0);
});

/** What a file may leave changed, the code that does, and the words about it. */
const LEFT = [
  ["umask", 'test("x", () => { process.umask(0o777); });', /umask 00\d\d → 0777/],
  ["cwd", 'test("x", () => { process.chdir("/"); });', /working directory .* → \//],
  ["env", 'test("x", () => { process.env.LEFT = "1"; });', /environment variable LEFT/],
  ["read", 'process.env.READ = "1"; test("x", () => {});', /environment variable READ/],
  ["timer", 'test("x", () => { setTimeout(() => {}, 5000); });', /1 × open Timeout/],
  ["listener", 'test("x", () => { process.on("SIGUSR2", () => {}); });', /1 × listener for SIGUSR2/],
] as const;

test("each way a file can go wrong counts as failed, and harms no other file", () => {
  const { status, output } = runFixtures(
    {
      "fails.test.ts": `${header}test("wrong sum", () => { throw new Error("two and two"); });`,
      "exits.test.ts": `${header}test("leaves", () => { process.exit(0); });`,
      "broken.test.ts": 'throw new Error("cannot be read");',
      "empty.test.ts": "export {};",
      "late.test.ts": `${header}test("late", () => { setImmediate(() => setImmediate(() => { throw new Error("too late"); })); });`,
      "good.test.ts": `${header}test("good", () => {});`,
      "partly.test.ts": `${header}test("done", () => {}); test("left out", { skip: "no such kernel" }, () => {});`,
      "skips.test.ts": `${header}describe("all", { skip: "none" }, () => { test("a", () => {}); });`,
      "test/contract/full.test.ts": `${header}test("full", () => {});`,
      "test/contract/empty.test.ts": `${header}describe("nothing", () => {});`,
      ...Object.fromEntries(LEFT.map(([name, code]) => [`leaves-${name}.test.ts`, header + code])),
    },
    { KUBELET_STRICT: "1" },
  );
  assert.match(output, /wrong sum .*fails\.test\.ts/);
  assert.match(output, /process\.exit\(0\) called in a test/);
  assert.match(output, /src\/broken\.test\.ts: was not read to its end/);
  assert.match(output, /too late/);
  for (const file of ["src/empty", "src/skips", "test/contract/empty"]) {
    assert.match(output, new RegExp(`✗ ${file}\\.test\\.ts: no test of it was run`));
  }
  for (const file of ["src/partly\\.test\\.ts: left out", "src/skips\\.test\\.ts: all"]) {
    assert.match(output, new RegExp(`✗ skipped, and not in test/allowed-skips\\.ts: ${file}`));
  }
  const changed = output.split("\n").filter((line) => line.includes("leaves the process changed"));
  for (const [name, , words] of LEFT) {
    const line = changed.find((text) => text.includes(`src/leaves-${name}.test.ts`));
    assert.match(line ?? `nothing about ${name} in ${output}`, words);
  }
  assert.equal(changed.length, LEFT.length);
  // Passed: good, full, late, done and the tests that leave something. Failed: the three that are said so, three empty
  // files, what came too late, two skipped ones, and what was left changed.
  assert.match(output, new RegExp(`^${4 + LEFT.length} passed, ${9 + LEFT.length} failed, 2 skipped`, "m"));
  assert.equal(status, 1);
});

test("a test process that dies is a failure", () => {
  const { status, output } = runFixtures({
    "dies.test.ts": `${header}test("dies", () => { process.kill(process.pid, "SIGKILL"); });`,
  });
  assert.match(output, /ended \(SIGKILL\) before all tests had/);
  assert.equal(status, 1);
});

test("no matching file is a failure", () => {
  const { status, output } = runFixtures({});
  assert.match(output, /no test file matches/);
  assert.equal(status, 1);
});

const ALONE = [
  ["a skip that is not on the list", { "a.test.ts": 'test("ok", () => {}); test("s", { skip: "why" }, () => {});' }],
  ["a file without a test", { "a.test.ts": 'test("ok", () => {});', "b.test.ts": "export {};" }],
  ["a todo", { "a.test.ts": 'test("ok", () => {}); test("t", { todo: "later" }, () => {});' }],
] as const;
for (const [what, files] of ALONE) {
  test(`in strict mode ${what} alone fails the run`, () => {
    const fixtures = Object.fromEntries(Object.entries(files).map(([name, code]) => [name, header + code]));
    const { status, output } = runFixtures(fixtures, { KUBELET_STRICT: "1" });
    assert.equal(status, 1, output);
  });
}

test("a file that changes the process does not change it for the next one", () => {
  const changes = 'process.umask(0o077); process.chdir("/"); process.env.LEFT = "1";';
  const { output } = runFixtures({
    "a.test.ts": `${header}test("changes", () => { ${changes} });`,
    "z.test.ts": `${header}
        test("finds it as it was", () => {
          if (process.umask() === 0o077 || process.cwd() === "/" || process.env.LEFT === "1") throw new Error("changed");
        });`,
  });
  assert.match(output, /leaves the process changed/);
  assert.doesNotMatch(output, /finds it as it was/, output);
  assert.match(output, /^2 passed, 1 failed/m);
});
