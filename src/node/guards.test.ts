import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { recordSwapRisk } from "./guards.ts";

describe("memory-backed volumes on disk", () => {
  const rows: [string, number, string, boolean][] = [
    ["without swap", 0, "5.10.0-8-amd64", false],
    ["with swap on an old kernel", 1, "6.3.9", true],
    ["with swap on a kernel that can keep them out", 1, "6.4.0-1-amd64", false],
    ["with swap on a newer one", 1, "7.0.1", false],
  ];
  for (const [name, swapBytes, kernel, want] of rows) {
    test(`${name} ${want ? "are an event" : "are none"}`, () => {
      const events: string[] = [];
      recordSwapRisk({ swapBytes, kernel }, (_type, reason) => void events.push(reason));
      assert.deepEqual(events, want ? ["PossibleMemoryBackedVolumesOnDisk"] : []);
    });
  }
});
