import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CSI_DRIVER, CsiScene, type CsiSceneOptions } from "../../../test/support/csi-scene.ts";
import { csiError } from "../../adapters/plugins/csi-error.ts";
import { spaceOf } from "./stats.ts";

const STATS = {
  bytes: { available: 60, total: 100, used: 40 },
  inodes: { available: 6, total: 10, used: 3 },
  condition: { isAbnormal: true, message: "worn out" },
};
const SPACE = {
  device: 0,
  capacityBytes: 100,
  availableBytes: 60,
  usedBytes: 40,
  inodes: 10,
  inodesFree: 6,
  inodesUsed: 3,
};
const MOUNT = "/root/pods/uid-of-web/volumes/kubernetes.io~csi/pv-1/mount";

async function scene(options: CsiSceneOptions = {}): Promise<CsiScene> {
  const made = await new CsiScene(options).register();
  made.csi.capabilities = { ...made.csi.capabilities, hasStats: true, hasCondition: true };
  made.csi.stats = STATS;
  return made;
}

describe("what a driver's answer means", () => {
  test("bytes and inodes are taken as they are, and health only if it is asked for", () => {
    assert.deepEqual(spaceOf(STATS, { hasHealth: false }), SPACE);
    assert.deepEqual(spaceOf(STATS, { hasHealth: true }), { ...SPACE, condition: STATS.condition });
  });

  test("what is not counted is 0; nothing at all is an error, unless there is health", () => {
    const none = { bytes: undefined, inodes: undefined, condition: undefined };
    assert.equal(spaceOf({ ...none, bytes: STATS.bytes }, { hasHealth: false }).inodes, 0);
    assert.equal(spaceOf({ ...none, inodes: STATS.inodes }, { hasHealth: false }).capacityBytes, 0);
    assert.throws(() => spaceOf(none, { hasHealth: false }), /failed to get usage from response\. usage is nil/);
    assert.deepEqual(spaceOf(none, { hasHealth: true }).condition, { isAbnormal: false, message: "" });
  });
});

describe("the space of a CSI volume", () => {
  const read = (site: CsiScene, path = MOUNT) => site.spaces.read(path, { ...site.never, maxAgeMs: 60_000 });

  test("is asked of its driver where it is published, once a period, and not any more when the pod is gone", async () => {
    const site = await scene();
    const web = site.user("web");
    await site.prepare(web);
    assert.deepEqual(site.volumes.place(web, "v"), { path: MOUNT, hasDriver: true });
    assert.deepEqual(await read(site), SPACE);
    assert.deepEqual(await read(site), SPACE);
    assert.deepEqual(site.csi.asked("stats"), [{ volumeId: "disk-1", volumePath: MOUNT }]);
    await site.clock.advance(60_000);
    await read(site);
    await site.clock.advance(0);
    assert.equal(site.csi.asked("stats").length, 2);
    await site.teardown("web");
    assert.equal(await read(site), undefined);
    assert.match(
      (await site.metrics.expose()).body,
      new RegExp(`duration_seconds_count{metric_source="${CSI_DRIVER}"} 2`),
    );
  });

  test("of a block volume is asked for the device", async () => {
    const site = await scene({ volume: { volumeMode: "Block" } });
    await site.prepare(site.user("web"));
    const device = "/root/plugins/kubernetes.io/csi/volumeDevices/pv-1/dev/uid-of-web";
    assert.deepEqual(await read(site, device), SPACE);
  });

  test("of a volume that an earlier agent set up is asked, too", async () => {
    const site = await scene();
    const web = site.user("web");
    await site.prepare(web);
    await site.restart();
    site.volumes.wanted([web]);
    await site.clock.advance(0);
    assert.deepEqual(await read(site), SPACE);
  });

  test("of a driver that does not count it is unknown, and the driver is not asked for it", async () => {
    const site = await scene();
    site.csi.capabilities = { ...site.csi.capabilities, hasStats: false };
    await site.prepare(site.user("web"));
    assert.equal(await read(site), undefined);
    assert.deepEqual(site.csi.asked("stats"), []);
  });

  test("of a driver that hangs keeps nobody waiting: the last answer counts, and it is asked once", async () => {
    const site = await scene();
    await site.prepare(site.user("web"));
    await read(site);
    await site.clock.advance(60_000);
    site.csi.onCall = (method) => (method === "stats" ? new Promise<void>(() => undefined) : undefined);
    for (let n = 0; n < 3; n++) assert.deepEqual(await read(site), SPACE);
    assert.equal(site.csi.asked("stats").length, 2);
  });

  test("whose first answer does not come in a second is missing until it does", async () => {
    const site = await scene();
    await site.prepare(site.user("web"));
    let answer = (): void => undefined;
    const hangs = new Promise<void>((resolve) => (answer = resolve));
    site.csi.onCall = (method) => (method === "stats" ? hangs : undefined);
    const first = read(site);
    await site.clock.advance(1000);
    assert.equal(await first, undefined);
    answer();
    await site.clock.advance(0);
    assert.deepEqual(await read(site), SPACE);
  });

  test("keeps its last answer when the driver fails", async () => {
    const site = await scene();
    await site.prepare(site.user("web"));
    await read(site);
    await site.clock.advance(60_000);
    site.csi.faults.push({ method: "stats", error: csiError({ code: 13, details: "no" }) });
    await read(site);
    await site.clock.advance(0);
    assert.deepEqual(await read(site), SPACE);
  });
});

describe("the health of a CSI volume", () => {
  test("is looked at once a period although nobody asks, and what is abnormal is an event of the pod", async () => {
    const site = await scene({ reportsHealth: true });
    await site.prepare(site.user("web"));
    const stop = new AbortController();
    const watching = site.spaces.watch(() => 60_000, stop.signal).catch(() => undefined);
    await site.clock.advance(60_000);
    assert.deepEqual(site.events, ["VolumeConditionAbnormal: Volume v: worn out"]);
    site.csi.stats = { ...STATS, condition: { isAbnormal: false, message: "fine" } };
    await site.clock.advance(60_000);
    assert.equal(site.events.length, 1);
    stop.abort();
    await watching;
  });
});
