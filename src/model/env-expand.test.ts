import assert from "node:assert/strict";
import { test } from "node:test";
import { expandEnv } from "./env-expand.ts";

const known: Record<string, string> = { A: "1", B: "two", EMPTY: "", NESTED: "$(A)" };
const cases = [
  ["", ""],
  ["plain", "plain"],
  ["$(A)", "1"],
  ["x-$(A)-$(B)-y", "x-1-two-y"],
  ["$(EMPTY)|", "|"],
  ["$(UNKNOWN)", "$(UNKNOWN)"],
  ["$$(A)", "$(A)"],
  ["$$$(A)", "$1"],
  ["$$$$(A)", "$$(A)"],
  ["$A", "$A"],
  ["${A}", "${A}"],
  ["cost $", "cost $"],
  ["$$", "$"],
  ["$(A", "$(A"],
  ["$()", "$()"],
  ["$(A))", "1)"],
  ["$(NESTED)", "$(A)"],
  ["$($(A))", "$($(A))"],
] as const;
for (const [text, want] of cases) {
  test(`${JSON.stringify(text)} becomes ${JSON.stringify(want)}`, () => {
    const lookup = (name: string): string | undefined => (Object.hasOwn(known, name) ? known[name] : undefined);
    assert.equal(expandEnv(text, lookup), want);
  });
}

test("megabytes of open brackets are read once, not once for each", () => {
  const text = "$(".repeat(4_000_000);
  assert.equal(expandEnv(text, () => "x").length, text.length);
  assert.equal(
    expandEnv(`${text})`, () => "x"),
    "x",
  );
});
