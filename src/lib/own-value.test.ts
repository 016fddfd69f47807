import assert from "node:assert/strict";
import { test } from "node:test";
import { ownValue } from "./own-value.ts";

test("a key of the record is found", () => assert.equal(ownValue({ zone: "a" }, "zone"), "a"));

test("what every object inherits is no value", () => {
  for (const key of ["constructor", "toString", "hasOwnProperty", "__proto__"])
    assert.equal(ownValue<string>({ zone: "a" }, key), undefined);
  assert.equal(ownValue(undefined, "zone"), undefined);
});

test("an own key of such a name is found", () => {
  const record = Object.fromEntries([["constructor", "mine"]]);
  assert.equal(ownValue(record, "constructor"), "mine");
});
