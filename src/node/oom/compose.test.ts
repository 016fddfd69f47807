import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeOomState } from "./compose.ts";

test("a state of another shape counts as none", () => {
  const state = { bootId: "b", sequence: 5, sinceMicros: 7 };
  assert.deepEqual(decodeOomState(state), state);
  for (const other of [
    null,
    undefined,
    "x",
    7,
    [],
    {},
    { ...state, bootId: 1 },
    { ...state, sequence: "5" },
    { ...state, sinceMicros: undefined },
  ])
    assert.equal(decodeOomState(other), undefined, JSON.stringify(other));
});
