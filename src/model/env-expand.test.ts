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

/** A text that counts the characters that are searched in it. */
class CountedText extends String {
  searched = 0;

  override indexOf(what: string, from = 0): number {
    const found = super.indexOf(what, from);
    this.searched += (found === -1 ? this.length : found + 1) - from;
    return found;
  }
}

for (const [name, piece] of [
  ["open brackets", "$("],
  ["open brackets and dollar signs", "$($$"],
  ["closed brackets", "$(A)"],
] as const) {
  test(`a text of ${name} is searched twice at most, not once for each of them`, () => {
    const text = new CountedText(piece.repeat(10_000));
    expandEnv(text as unknown as string, () => "x", text.length); // reason: it has what expandEnv uses of a string
    assert.ok(text.searched > 0 && text.searched <= 2 * text.length, `${text.searched} of ${text.length}`);
  });
}

test("open brackets before one that closes are one name", () => {
  assert.equal(
    expandEnv(`${"$(".repeat(1000)})`, () => "x", 1),
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
