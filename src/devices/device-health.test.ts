import assert from "node:assert/strict";
import { test } from "node:test";
import { ContainerAllocateResponse } from "../adapters/devices/generated/deviceplugin.ts";
import { FakeClock } from "../lib/clock.ts";
import { NO_NODE } from "./device.ts";
import { deviceHealth } from "./device-health.ts";
import { DeviceInventory } from "./inventory.ts";
import { PodDevices } from "./pod-devices.ts";

const MEMORY = "example.com/gpu-memory";

test("of thousands of devices a status has some, those that are not healthy first", () => {
  const inventory = new DeviceInventory(new FakeClock());
  const pods = new PodDevices();
  const ids = Array.from({ length: 20_000 }, (_, at) => `GPU-4cf8db2d-06c0-7d70-1a51-e59b25b2c16c-${at}`);
  const bad = ids[19_999] ?? "";
  inventory.connected(MEMORY);
  inventory.listed(
    MEMORY,
    ids.map((id) => ({ id, isHealthy: id !== bad, nodes: [] })),
  );
  const answer = ContainerAllocateResponse.fromPartial({});
  pods.set({ uid: "u", container: "c", resource: MEMORY }, { byNode: new Map([[NO_NODE, ids]]), answer });
  const [status] = deviceHealth({ pods, inventory }, "u", "c");
  assert.deepEqual(status?.resources?.[0], { resourceID: bad, health: "Unhealthy" });
  assert.equal(status.resources.length, 512);
  assert.ok(JSON.stringify(status).length < 64 * 1024, "far below what the API server takes");
});

test("a device that its plugin does not list any more has unknown health, and devices are in the order of their ids", () => {
  const inventory = new DeviceInventory(new FakeClock());
  const pods = new PodDevices();
  inventory.connected(MEMORY);
  inventory.listed(MEMORY, [{ id: "c", isHealthy: true, nodes: [] }]);
  const answer = ContainerAllocateResponse.fromPartial({});
  pods.set({ uid: "u", container: "app", resource: MEMORY }, { byNode: new Map([[NO_NODE, ["c", "a"]]]), answer });
  assert.deepEqual(deviceHealth({ pods, inventory }, "u", "app")[0]?.resources, [
    { resourceID: "a", health: "Unknown" },
    { resourceID: "c", health: "Healthy" },
  ]);
});
