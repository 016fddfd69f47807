import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CSI_DRIVER, FakeCsi } from "../../../test/support/csi-scene.ts";
import { FakeObjects } from "../../../test/support/objects.ts";
import { VolumeMachine } from "../../../test/support/volume-machine.ts";
import { manyListeners } from "../../lib/abort.ts";
import { FakeClock } from "../../lib/clock.ts";
import { silent } from "../../lib/log.ts";
import { AllocatableUpdates } from "./allocatable.ts";
import { CsiDrivers } from "./driver.ts";
import { VolumeCalls } from "./volume-calls.ts";

const PLUGIN = { name: CSI_DRIVER, endpoint: "/e", socket: "/s", versions: ["1.0.0"] };

function site() {
  const { signal } = manyListeners();
  const clock = new FakeClock();
  const objects = new FakeObjects();
  const csi = new FakeCsi(new VolumeMachine());
  let maxVolumes = 4;
  const updates: number[] = [];
  const service = { ...csi.service(), info: () => Promise.resolve({ nodeId: "n", maxVolumes, topology: {} }) };
  const drivers = new CsiDrivers({ log: silent, calls: new VolumeCalls(signal), connect: () => service });
  const report = { update: async ({ maxVolumes: count }: { maxVolumes: number }) => void updates.push(count) };
  const allocatable = new AllocatableUpdates({ clock, log: silent, objects, drivers, report }, signal);
  const period = (seconds: number | undefined): void =>
    objects.put(
      { kind: "CSIDriver", namespace: "", name: CSI_DRIVER },
      { metadata: {}, spec: { ...(seconds !== undefined && { nodeAllocatableUpdatePeriodSeconds: seconds }) } },
    );
  return {
    clock,
    drivers,
    updates,
    period,
    allocatable,
    signal,
    setLimit: (count: number) => void (maxVolumes = count),
  };
}

describe("the number of volumes that a driver can attach", () => {
  test("is asked for once a period of the CSIDriver object, as long as the driver is registered", async () => {
    const { clock, drivers, updates, period, setLimit, signal } = site();
    period(10);
    await drivers.register(PLUGIN, { signal });
    await clock.advance(10_000);
    setLimit(3);
    await clock.advance(10_000);
    assert.deepEqual(updates, [4, 3]);
    drivers.deregister(PLUGIN);
    await clock.advance(60_000);
    assert.deepEqual(updates, [4, 3]);
    assert.equal(clock.waiting, 0);
  });

  test("is asked for by another period when the object changes, and not without one", async () => {
    const { clock, drivers, updates, period, signal } = site();
    period(undefined);
    await drivers.register(PLUGIN, { signal });
    await clock.advance(60_000);
    assert.deepEqual(updates, []);
    period(30);
    await clock.advance(30_000);
    assert.equal(updates.length, 1);
    period(undefined);
    await clock.advance(120_000);
    assert.equal(updates.length, 1);
  });

  test("is asked for at once when a volume found no room; a failure is not one of anybody else", async () => {
    const { drivers, updates, allocatable, signal } = site();
    await allocatable.update(CSI_DRIVER, { signal });
    assert.deepEqual(updates, []);
    await drivers.register(PLUGIN, { signal });
    await allocatable.update(CSI_DRIVER, { signal });
    assert.deepEqual(updates, [4]);
  });

  test("is asked for once in 10 s however many pods find no room", async () => {
    const { clock, drivers, updates, allocatable, signal } = site();
    await drivers.register(PLUGIN, { signal });
    for (let pod = 0; pod < 100; pod++) allocatable.exhausted(CSI_DRIVER);
    await clock.advance(9_999);
    allocatable.exhausted(CSI_DRIVER);
    await clock.advance(0);
    assert.deepEqual(updates, [4]);
    await clock.advance(1);
    allocatable.exhausted(CSI_DRIVER);
    await clock.advance(0);
    assert.deepEqual(updates, [4, 4]);
  });
});
