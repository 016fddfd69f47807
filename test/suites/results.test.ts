import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Ended, judge, type Outcome, REPORTER_FLAGS, RESULTS, readResults } from "./results.ts";

const ended = (more: Partial<Ended>): Ended => ({
  file: "test/integration/some.ts",
  code: 0,
  output: "the last line\n",
  results: [{ test: "one", passed: true }],
  left: [],
  ...more,
});
const skipped = [
  { test: "one", passed: true },
  { test: "two", passed: true, skipped: "no such kernel" },
];

const ROWS: readonly [string, Partial<Ended>, { strict: Outcome["result"]; usual: Outcome["result"] }, RegExp][] = [
  ["tests that pass", {}, { strict: "passed", usual: "passed" }, /^$/],
  ["no test", { results: [] }, { strict: "failed", usual: "failed" }, /^no test was run$/],
  ["a failure", { code: 1 }, { strict: "failed", usual: "failed" }, /^exit code 1$/],
  ["a signal", { code: "SIGKILL" }, { strict: "failed", usual: "failed" }, /^SIGKILL$/],
  ["something left behind", { left: ["mount /x"] }, { strict: "failed", usual: "failed" }, /^left something behind$/],
  ["a suite that cannot run", { code: 77, results: [] }, { strict: "failed", usual: "skipped" }, /: the last line$/],
];

for (const [what, more, want, reason] of ROWS) {
  test(`a suite with ${what}`, () => {
    assert.equal(judge(ended(more), true).result, want.strict);
    const outcome = judge(ended(more), false);
    assert.equal(outcome.result, want.usual);
    assert.match(outcome.reason, reason);
  });
}

test("a skipped test is told with its reason; strict mode minds when it is not on the list", () => {
  const usual = judge(ended({ results: skipped }), false);
  assert.deepEqual(usual, {
    result: "passed",
    reason: "",
    tests: 1,
    skips: [{ test: "two", reason: "no such kernel", isAllowed: false }],
  });
  assert.match(judge(ended({ results: skipped }), true).reason, /not in test\/allowed-skips\.ts/);
});

test("a suite that skipped every test is skipped, and failed in strict mode", () => {
  const results = skipped.slice(1);
  assert.equal(judge(ended({ results }), false).result, "skipped");
  assert.equal(judge(ended({ results }), true).result, "failed");
});

test("the reporter writes each test with its outcome and the reason of a skip", () => {
  const directory = mkdtempSync(join(tmpdir(), "results-"));
  try {
    const file = join(directory, "suite.mjs");
    const code = `import { describe, test } from "node:test";
      describe("suite", () => {
        test("passes", () => {});
        test("fails", () => { throw new Error("no"); });
        test("skips", { skip: "no such kernel" }, () => {});
        test("later", { todo: "not yet" }, () => {});
      });
      describe("whole", { skip: "nothing here" }, () => { test("never", () => {}); });`;
    writeFileSync(file, code);
    const results = join(directory, "results");
    const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
    spawnSync(process.execPath, [...REPORTER_FLAGS, file], { env: { ...env, [RESULTS]: results } });
    assert.deepEqual(readResults(results), [
      { test: "passes", passed: true },
      { test: "fails", passed: false },
      { test: "skips", passed: true, skipped: "no such kernel" },
      { test: "later", passed: true, skipped: "not yet" },
      { test: "whole", passed: true, skipped: "nothing here" },
    ]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
