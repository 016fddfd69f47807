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
    const { KUBELET_TEST_CHILD: _child, NODE_TEST_CONTEXT: _context, ...env } = process.env;
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

test("a run of good files counts every test and passes", () => {
  const { status, output } = runFixtures({
    "one.test.ts": `${header}test("a", () => {}); describe("s", () => { test("b", async () => {}); });`,
    "two.test.ts": `${header}test("c", () => {}); test.skip("d", () => {});`,
    "three.root.test.ts": `${header}test("needs root", () => { throw new Error("not here"); });`,
  });
  assert.match(output, /^3 passed, 0 failed, 1 skipped \(2 files/m);
  assert.equal(status, 0);
});

test("failing, exiting, broken, empty and late files each count as failed", () => {
  const { status, output } = runFixtures({
    "fails.test.ts": `${header}test("wrong sum", () => { throw new Error("two and two"); });`,
    "exits.test.ts": `${header}test("leaves", () => { process.exit(0); });`,
    "broken.test.ts": 'throw new Error("cannot be read");',
    "empty.test.ts": "export {};",
    "late.test.ts": `${header}test("late", () => { setImmediate(() => setImmediate(() => { throw new Error("too late"); })); });`,
    "good.test.ts": `${header}test("good", () => {});`,
  });
  assert.match(output, /wrong sum .*fails\.test\.ts/);
  assert.match(output, /process\.exit\(0\) called in a test/);
  assert.match(output, /src\/broken\.test\.ts: was not read to its end/);
  assert.match(output, /src\/empty\.test\.ts: no test of it was run/);
  assert.match(output, /too late/);
  assert.match(output, /^2 passed, 5 failed/m);
  assert.equal(status, 1);
});

test("hooks of a file are its own", () => {
  const { status, output } = runFixtures({
    "a.test.ts": `${header}let mask = 0;
      before(() => { mask = process.umask(0o077); });
      after(() => { process.umask(mask); });
      test("strict", () => { if (process.umask() !== 0o077) throw new Error("before did not run"); });`,
    "b.test.ts": `${header}test("usual", () => { if (process.umask() === 0o077) throw new Error("another's umask"); });`,
  });
  assert.match(output, /^2 passed, 0 failed/m);
  assert.equal(status, 0);
});

test("a file that leaves the process changed fails, and the next one does not", () => {
  const left = [
    ["umask", 'test("x", () => { process.umask(0o777); });', /umask 00\d\d → 0777/],
    ["cwd", 'test("x", () => { process.chdir("/"); });', /working directory .* → \//],
    ["env", 'test("x", () => { process.env.LEFT = "1"; });', /environment variable LEFT/],
    ["read", 'process.env.READ = "1"; test("x", () => {});', /environment variable READ/],
    ["timer", 'test("x", () => { setTimeout(() => {}, 5000); });', /1 × open Timeout/],
    ["listener", 'test("x", () => { process.on("SIGUSR2", () => {}); });', /1 × listener for SIGUSR2/],
  ] as const;
  const { status, output } = runFixtures(
    Object.fromEntries([
      ...left.map(([name, code]) => [`${name}.test.ts`, header + code]),
      ["zero.test.ts", `${header}test("fine", () => {});`],
    ]),
  );
  const lines = output.split("\n").filter((line) => line.includes("leaves the process changed"));
  for (const [name, , words] of left) {
    const line = lines.find((text) => text.includes(`src/${name}.test.ts`));
    assert.match(line ?? `nothing about ${name} in ${output}`, words);
  }
  assert.equal(lines.length, left.length);
  assert.equal(status, 1);
});

test("an empty contract file fails", () => {
  const { status, output } = runFixtures({
    "test/contract/full.test.ts": `${header}test("full", () => {});`,
    "test/contract/empty.test.ts": `${header}describe("nothing", () => {});`,
  });
  assert.match(output, /test\/contract\/empty\.test\.ts: no test of it was run/);
  assert.equal(status, 1);
});

test("each skipped test is named with its reason, and fails in strict mode unless it is allowed", () => {
  const files = {
    "partly.test.ts": `${header}test("done", () => {}); test("left out", { skip: "no such kernel" }, () => {});`,
  };
  const usual = runFixtures(files, { KUBELET_STRICT: "" });
  assert.match(usual.output, /^skipped src\/partly\.test\.ts: left out: no such kernel$/m);
  assert.equal(usual.status, 0);
  const strict = runFixtures(files, { KUBELET_STRICT: "1" });
  assert.match(strict.output, /^✗ skipped, and not in test\/allowed-skips\.ts: src\/partly\.test\.ts: left out/m);
  assert.equal(strict.status, 1);
});

test("a file whose tests were all skipped fails in strict mode", () => {
  const { status, output } = runFixtures(
    { "skips.test.ts": `${header}describe("all", { skip: "none" }, () => { test("a", () => {}); });` },
    { KUBELET_STRICT: "1" },
  );
  assert.match(output, /src\/skips\.test\.ts: no test of it was run/);
  assert.equal(status, 1);
});

test("the seed of property tests is shown", () => {
  const { output } = runFixtures({ "one.test.ts": `${header}test("a", () => {});` }, { KUBELET_PROPERTY_SEED: "123" });
  assert.match(output, /^property seed 123 /m);
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
