import assert from "node:assert/strict";
import { test } from "node:test";
import { StartError } from "./start-error.ts";

test("the messages of a failed start are bounded", () => {
  const huge = "x".repeat(1024 * 1024);
  const error = new StartError("ErrImagePull", { afterMs: 1, message: huge }, { message: huge });
  assert.equal(Buffer.byteLength(error.message), 4096);
  assert.equal(Buffer.byteLength(error.retry.message ?? ""), 4096);
});
