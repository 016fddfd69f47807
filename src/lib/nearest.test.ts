import assert from "node:assert/strict";
import { test } from "node:test";
import { editDistance, nearest } from "./nearest.ts";

const flags = ["pod-manifest-path", "manifest-url", "manifest-url-header", "max-pods", "root-dir", "v"];

const cases = [
  { name: "one wrong letter", word: "rot-dir", want: ["root-dir"] },
  { name: "two letters swapped", word: "max-posd", want: ["max-pods"] },
  {
    name: "a part of a name finds all that contain it",
    word: "manifest-url",
    want: ["manifest-url", "manifest-url-header"],
  },
  { name: "case does not matter", word: "ROOT-DIR", want: ["root-dir"] },
  { name: "nothing is near to another word", word: "banana", want: [] },
  { name: "one letter does not match every name that has it", word: "m", want: ["v"] },
];
for (const c of cases) test(c.name, () => assert.deepEqual(nearest(c.word, flags), c.want));

test("at most three are named", () => {
  assert.equal(nearest("pod", ["pod-a", "pod-b", "pod-c", "pod-d"]).length, 3);
});

test("the distance is cut off above the limit", () => {
  assert.equal(editDistance("kitten", "sitting", 5), 3);
  assert.equal(editDistance("kitten", "sitting", 2), 3);
  assert.equal(editDistance("a", "abcdefgh", 2), 3);
});
