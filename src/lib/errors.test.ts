import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { CodedError, errnoOf, messageOf, unreachable } from "./errors.ts";

class PlaceError extends CodedError<"Here" | "There"> {}

test("a coded error carries the name of its class, its code and its cause", () => {
  const cause = new Error("below");
  const error = new PlaceError("There", "not here", { cause });
  assert.deepEqual([error.name, error.code, error.message, error.cause], ["PlaceError", "There", "not here", cause]);
  assert.ok(error instanceof CodedError);
});

test("errno and message of whatever is thrown", () => {
  try {
    readFileSync("/does/not/exist");
  } catch (error) {
    assert.equal(errnoOf(error), "ENOENT");
  }
  assert.equal(errnoOf(new Error("plain")), undefined);
  assert.equal(errnoOf("ENOENT"), undefined);
  assert.equal(messageOf("text"), "text");
  assert.equal(messageOf(undefined), "undefined");
});

test("unreachable is loud when the compiler was fooled", () => {
  // The cast stands for data that does not match its type.
  assert.throws(() => unreachable("surprise" as never), /surprise/);
});
