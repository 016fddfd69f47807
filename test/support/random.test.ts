import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { chooseSeed } from "./random.ts";

const NAME = "KUBELET_TEST_OF_SEEDS";

afterEach(() => {
  delete process.env[NAME];
});

test("a named seed is taken, without a name the usual one", () => {
  assert.equal(chooseSeed(NAME, 1), 1);
  process.env[NAME] = "17";
  assert.equal(chooseSeed(NAME, 1), 17);
});

test("a random seed is another each time", () => {
  process.env[NAME] = "random";
  assert.notEqual(chooseSeed(NAME, 1), chooseSeed(NAME, 1));
});
