import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PersistentVolumeClaim, PersistentVolumeClaimStatus } from "../../model/generated/types.ts";
import { failedPatch, finishedPatch, inProgressPatch } from "./claim-status.ts";

function claim(status: PersistentVolumeClaimStatus): PersistentVolumeClaim {
  return { metadata: { name: "data", namespace: "ns", resourceVersion: "7" }, spec: {}, status };
}

const condition = (type: string, status = "True") => ({ type, status });
const metadata = { resourceVersion: "7" };

describe("the status of a claim whose volume grows", () => {
  test("in progress: only if nobody changed it meanwhile", () => {
    assert.deepEqual(inProgressPatch(claim({})), {
      metadata,
      status: { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } },
    });
  });

  test("finished: the new capacity, and nothing that belongs to growing; other conditions and statuses stay", () => {
    const conditions = [condition("FileSystemResizePending"), condition("ModifyingVolume"), condition("Resizing")];
    const statuses = { storage: "NodeResizeInProgress", "example.com/iops": "NodeResizePending" };
    const found = finishedPatch(claim({ conditions, allocatedResourceStatuses: statuses }), {
      size: "2Gi",
      hasSteps: true,
    });
    assert.deepEqual(found, {
      metadata,
      status: {
        capacity: { storage: "2Gi" },
        allocatedResourceStatuses: { storage: null },
        conditions: [
          { $patch: "delete", type: "FileSystemResizePending" },
          { $patch: "delete", type: "Resizing" },
        ],
      },
    });
  });

  test("finished: the only status of a resource takes the field with it", () => {
    const allocatedResourceStatuses = { storage: "NodeResizeInProgress" };
    const { status } = finishedPatch(claim({ allocatedResourceStatuses }), { size: "2Gi", hasSteps: true });
    assert.deepEqual(status, { capacity: { storage: "2Gi" }, allocatedResourceStatuses: null });
  });

  test("finished, of an older controller: only the capacity", () => {
    const { status } = finishedPatch(claim({}), { size: "2Gi", hasSteps: false });
    assert.deepEqual(status, { capacity: { storage: "2Gi" } });
  });

  const at = Date.UTC(2026, 0, 2, 3, 4, 5);
  const error = {
    type: "NodeResizeError",
    status: "True",
    lastTransitionTime: "2026-01-02T03:04:05Z",
    message: "failed to expand pvc with no room",
  };
  test("failed: a condition, whatever the claim is by now", () => {
    assert.deepEqual(failedPatch(claim({}), { message: "no room", at, isInfeasible: false }), {
      status: { conditions: [error] },
    });
  });

  test("failed again: the condition stays as it is", () => {
    const known = claim({ conditions: [condition("NodeResizeError")] });
    assert.deepEqual(failedPatch(known, { message: "no room", at, isInfeasible: false }), { status: {} });
  });

  test("infeasible: the controller's turn", () => {
    assert.deepEqual(failedPatch(claim({}), { message: "no room", at, isInfeasible: true }).status, {
      allocatedResourceStatuses: { storage: "NodeResizeInfeasible" },
      conditions: [error],
    });
  });
});
