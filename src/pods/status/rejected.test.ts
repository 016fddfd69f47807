import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodStatus } from "../../model/generated/types.ts";
import { rejectedStatus } from "./rejected.ts";

const rejection = { reason: "UnexpectedAdmissionError", message: "no healthy devices present" };
const statusAfter = (status: PodStatus): PodStatus =>
  rejectedStatus({ metadata: { name: "p" }, spec: { containers: [] }, status }, rejection, 0);

test("a pod that never ran gets no list of containers", () => {
  const { containerStatuses, conditions } = statusAfter({ phase: "Pending" });
  assert.deepEqual({ containerStatuses, conditions }, { containerStatuses: undefined, conditions: undefined });
});

test("the containers and conditions of a pod that ran before a reboot are removed", () => {
  const container = { name: "c", image: "i", imageID: "", ready: true, restartCount: 0 };
  const scheduled = { type: "PodScheduled", status: "True" };
  const status = statusAfter({
    phase: "Running",
    containerStatuses: [container],
    conditions: [{ type: "Ready", status: "True" }, scheduled],
  });
  assert.equal(status.phase, "Failed");
  assert.deepEqual(status.containerStatuses, []);
  assert.deepEqual(status.conditions, [scheduled]);
  assert.equal("initContainerStatuses" in status, false);
});
