import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ContainerStatus } from "../../model/generated/types.ts";
import { messageLimit, withinLimit } from "./message-limit.ts";

function status(message: string, more: Partial<ContainerStatus> = {}): ContainerStatus {
  return {
    name: "app",
    image: "",
    imageID: "",
    ready: false,
    restartCount: 0,
    state: { terminated: { exitCode: 1, message } },
    ...more,
  };
}

describe("termination messages share 12 KiB a pod", () => {
  const parts: [number, number][] = [
    [1, 12_288],
    [2, 6144],
    [5, 2457],
    [0, 12_288],
  ];
  for (const [containers, want] of parts) {
    test(`${containers} containers: ${want} bytes each`, () => assert.equal(messageLimit(containers), want));
  }

  const cases: [string, string, number, string][] = [
    ["what fits stays", "abc", 3, "abc"],
    ["the beginning is kept", "abcdef", 3, "abc"],
    ["a character is never cut in half", "aé", 2, "a"],
    ["nor one of four bytes", "ab😀", 5, "ab"],
    ["one that just fits stays", "ab😀", 6, "ab😀"],
  ];
  for (const [name, message, bytes, want] of cases) {
    test(name, () => assert.equal(withinLimit(status(message), bytes).state?.terminated?.message, want));
  }

  test("the last instance's message is cut too, and nothing else changes", () => {
    const before = status("abcdef", { lastState: { terminated: { exitCode: 2, message: "ghijkl" } } });
    assert.deepEqual(withinLimit(before, 2), {
      ...before,
      state: { terminated: { exitCode: 1, message: "ab" } },
      lastState: { terminated: { exitCode: 2, message: "gh" } },
    });
  });

  test("states without a message are as they were", () => {
    const running = status("", { state: { running: { startedAt: "2026-01-01T00:00:00Z" } }, lastState: {} });
    assert.deepEqual(withinLimit(running, 1), running);
  });
});
