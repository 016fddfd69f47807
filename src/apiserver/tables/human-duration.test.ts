import assert from "node:assert/strict";
import { test } from "node:test";
import { humanDuration, since } from "./human-duration.ts";

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;
const cases: readonly (readonly [number, string])[] = [
  [-5 * S, "<invalid>"],
  [-500, "0s"],
  [0, "0s"],
  [119 * S, "119s"],
  [2 * M, "2m"],
  [2 * M + 30 * S, "2m30s"],
  [10 * M + 30 * S, "10m"],
  [179 * M, "179m"],
  [3 * H + 5 * M, "3h5m"],
  [8 * H + 5 * M, "8h"],
  [47 * H, "47h"],
  [2 * D + 3 * H, "2d3h"],
  [8 * D + 3 * H, "8d"],
  [729 * D, "729d"],
  [731 * D, "2y1d"],
  [9 * 365 * D, "9y"],
];
for (const [ms, want] of cases) test(`${ms} ms is ${want}`, () => assert.equal(humanDuration(ms), want));

test("a time that is not set is unknown", () => {
  assert.equal(since(undefined, 0), "<unknown>");
  assert.equal(since(null, 0), "<unknown>");
  assert.equal(since("1970-01-01T00:00:00Z", 5000), "5s");
});
