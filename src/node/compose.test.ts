import assert from "node:assert/strict";
import { test } from "node:test";
import { recordStart } from "./compose.ts";

for (const [cgroupVersion, want] of [
  [1, ["Normal Starting", "Warning CgroupV1"]],
  [2, ["Normal Starting"]],
  [undefined, ["Normal Starting"]],
] as const) {
  test(`events of a start with cgroup version ${cgroupVersion}`, () => {
    const events: string[] = [];
    recordStart({ cgroupVersion, event: (type, reason) => void events.push(`${type} ${reason}`) });
    assert.deepEqual(events, want);
  });
}
