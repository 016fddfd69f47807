import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { chooseSeed } from "./random.ts";

const NAME = "KUBELET_TEST_OF_SEEDS";
const had = process.env["CI"];

afterEach(() => {
  delete process.env[NAME];
  if (had === undefined) delete process.env["CI"];
  else process.env["CI"] = had;
});

test("a named seed is taken, in CI too", () => {
  process.env[NAME] = "17";
  process.env["CI"] = "true";
  assert.equal(chooseSeed(NAME, 1), 17);
});

test("without a name the seed is the usual one, and another each time in CI", () => {
  delete process.env["CI"];
  assert.equal(chooseSeed(NAME, 1), 1);
  process.env["CI"] = "true";
  assert.notEqual(chooseSeed(NAME, 1), chooseSeed(NAME, 1));
});
