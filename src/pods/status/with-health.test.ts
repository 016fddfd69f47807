import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContainerStatus, ResourceHealth } from "../../model/generated/types.ts";
import { withHealth } from "./with-health.ts";

const GPU = "example.com/gpu";
const running: ContainerStatus = { name: "app", image: "", imageID: "", ready: true, restartCount: 0 };
const ended: ContainerStatus = { ...running, state: { terminated: { exitCode: 0 } } };
const of = (...resources: ResourceHealth[]) => [{ name: GPU, resources }];

test("the health of devices is part of the status, and what is released keeps the last one", () => {
  const healthy = of({ resourceID: "a", health: "Healthy" });
  assert.deepEqual(withHealth(running, healthy, undefined).allocatedResourcesStatus, healthy);
  const last = { ...running, allocatedResourcesStatus: healthy };
  assert.deepEqual(withHealth(ended, [], last).allocatedResourcesStatus, healthy);
  assert.equal(
    withHealth({ ...running, allocatedResourcesStatus: healthy }, [], last).allocatedResourcesStatus,
    undefined,
  );
});

test("a device without health has that of the last status, else it is unknown", () => {
  const last = { ...running, allocatedResourcesStatus: of({ resourceID: "a", health: "Unhealthy", message: "hot" }) };
  const now = of({ resourceID: "a" }, { resourceID: "b" }, { resourceID: "c", health: "Healthy" });
  assert.deepEqual(withHealth(running, now, last).allocatedResourcesStatus?.[0]?.resources, [
    { resourceID: "a", health: "Unhealthy", message: "hot" },
    { resourceID: "b", health: "Unknown" },
    { resourceID: "c", health: "Healthy" },
  ]);
});
