import assert from "node:assert/strict";
import { test } from "node:test";
import { readPair } from "./port-forward.ts";

const pairs = [
  { word: "80", want: { local: 80, remote: 80 } },
  { word: "8080:80", want: { local: 8080, remote: 80 } },
  { word: ":80", want: { local: 0, remote: 80 } },
];
for (const { word, want } of pairs) test(`port-forward ${word}`, () => assert.deepEqual(readPair(word), want));

for (const word of ["", "0", "x", "80:", "80:0", "70000", "1:70000", "1:2:3", "-1"]) {
  test(`port-forward ${JSON.stringify(word)} is refused`, () => assert.throws(() => readPair(word), /invalid port/));
}
