import assert from "node:assert/strict";
import { test } from "node:test";
import { matchesWildcard } from "./wildcard.ts";

const cases = [
  { pattern: "", text: "", want: true },
  { pattern: "*", text: "", want: true },
  { pattern: "*", text: "registry", want: true },
  { pattern: "app*", text: "app-1", want: true },
  { pattern: "app*", text: "an-app", want: false },
  { pattern: "*a*b", text: "xaybzb", want: true },
  { pattern: "*a*b", text: "xaybz", want: false },
  { pattern: "a?c", text: "abc", want: true },
  { pattern: "a?c", text: "ac", want: false },
  { pattern: "abc", text: "abcd", want: false },
];
for (const { pattern, text, want } of cases) {
  test(`"${pattern}" ${want ? "matches" : "does not match"} "${text}"`, () =>
    assert.equal(matchesWildcard(pattern, text), want));
}

test("a hostile pattern ends soon", () => {
  assert.equal(matchesWildcard(`${"*a".repeat(1000)}b`, "a".repeat(5000)), false);
});
