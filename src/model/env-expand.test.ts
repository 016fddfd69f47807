import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError } from "./config-error.ts";
import { expandEnv, expandWords } from "./env-expand.ts";

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
    assert.equal(expandEnv(text, lookup, 100), want);
  });
}

test("megabytes of open brackets are read once, not once for each", () => {
  const text = "$(".repeat(4_000_000);
  assert.equal(expandEnv(text, () => "x", text.length).length, text.length);
  assert.equal(
    expandEnv(`${text})`, () => "x", 1),
    "x",
  );
});

test("a result over the limit is refused, counted in bytes, before it is made", () => {
  assert.equal(
    expandEnv("$(A)$(A)", () => "ä", 4),
    "ää",
  );
  assert.throws(() => expandEnv("$(A)$(A)", () => "ä", 3), ConfigError);
  assert.throws(() => expandEnv("plain", () => "", 4), ConfigError);
  const value = "x".repeat(2 ** 20);
  // Longer than any string can be.
  assert.throws(() => expandEnv("$(A)".repeat(1000), () => value, 4 * 2 ** 20), /take more than 4194304 bytes/);
});

test("words share one limit", () => {
  const lookup = (): string => "1234";
  assert.deepEqual(expandWords(["$(A)", "x", "$(A)"], lookup, 9), ["1234", "x", "1234"]);
  assert.throws(() => expandWords(["$(A)", "x", "$(A)"], lookup, 8), ConfigError);
});
