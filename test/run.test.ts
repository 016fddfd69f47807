import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

// The runner must not be able to pass by accident: each way a test file can go wrong is seen.

function runFixtures(files: Readonly<Record<string, string>>): { status: number | null; output: string } {
  const root = mkdtempSync(join(tmpdir(), "kubelet-run-"));
  try {
    mkdirSync(join(root, "src"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(root, "src", name), text);
    const { KUBELET_TEST_CHILD: _child, NODE_TEST_CONTEXT: _context, ...env } = process.env;
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", join(import.meta.dirname, "run.ts")],
      { env: { ...env, KUBELET_TEST_ROOT: root }, encoding: "utf8", timeout: 60_000 },
    );
    return { status, output: stdout + stderr };
  } finally {
    rmSync(root, { recursive: true });
  }
}

const header = 'import { test, describe } from "node:test";\n';

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
  assert.match(output, /src\/empty\.test\.ts: no test of it was reported/);
  assert.match(output, /too late/);
  assert.match(output, /^2 passed, 5 failed/m);
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
