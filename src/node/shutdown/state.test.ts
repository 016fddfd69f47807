import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decodeShutdownState, encodeShutdownState } from "./state.ts";

describe("the state of a shutdown", () => {
  const startedAt = Date.UTC(2026, 0, 2);

  test("is written in the format of Kubernetes, with the boot", () => {
    assert.deepEqual(encodeShutdownState({ bootId: "b", startedAt }), {
      bootID: "b",
      startTime: "2026-01-02T00:00:00.000Z",
      endTime: "0001-01-01T00:00:00Z",
    });
  });

  for (const state of [
    { bootId: "b", startedAt },
    { bootId: "b", startedAt, endedAt: startedAt + 1 },
  ]) {
    test(`${"endedAt" in state ? "one that ended" : "one that did not end"} is read as it was written`, () => {
      assert.deepEqual(decodeShutdownState(encodeShutdownState(state)), state);
    });
  }

  test("one of another kubelet has no boot", () => {
    const document = { startTime: "2026-01-02T00:00:00.123456789Z", endTime: "2026-01-02T00:00:05Z" };
    assert.deepEqual(decodeShutdownState(document), { startedAt: startedAt + 123, endedAt: startedAt + 5000 });
  });

  for (const document of [
    undefined,
    null,
    7,
    {},
    { startTime: 7 },
    { startTime: "soon" },
    { startTime: "0001-01-01T00:00:00Z" },
  ]) {
    test(`${JSON.stringify(document)} is none`, () => assert.equal(decodeShutdownState(document), undefined));
  }
});
