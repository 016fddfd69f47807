import assert from "node:assert/strict";
import { test } from "node:test";
import { isSameStatus } from "./status-comparison.ts";

for (const { name, stored, next, want } of [
  { name: "no status is an empty one", stored: undefined, next: {}, want: true },
  {
    name: "zero, an empty text and an empty list may be missing",
    stored: {},
    next: { n: 0, t: "", l: [] },
    want: true,
  },
  { name: "and be there where they are not wanted", stored: { n: 0, l: [] }, next: { u: undefined }, want: true },
  { name: "the order of fields does not count", stored: { a: 1, b: 2 }, next: { b: 2, a: 1 }, want: true },
  { name: "another number counts", stored: { n: 1 }, next: { n: 2 }, want: false },
  { name: "a number that became zero counts", stored: { n: 1 }, next: { n: 0 }, want: false },
  { name: "false counts", stored: {}, next: { f: false }, want: false },
  { name: "the order of a list counts", stored: { l: [1, 2] }, next: { l: [2, 1] }, want: false },
]) {
  test(name, () => assert.equal(isSameStatus(stored, next), want));
}
