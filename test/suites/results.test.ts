import assert from "node:assert/strict";
import { test } from "node:test";
import { type Ended, judge, type Outcome } from "./results.ts";

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
