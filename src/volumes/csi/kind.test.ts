import assert from "node:assert/strict";
import { test } from "node:test";
import { VolumeScene } from "../../../test/support/volumes.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import type { CSIDriverSpec, PersistentVolume, PersistentVolumeClaim, Volume } from "../../model/generated/types.ts";
import { VOLUME_KINDS } from "../kinds/index.ts";
import { AttachedVolumes } from "./attachment.ts";
import { CsiDrivers, type CsiNodeService } from "./driver.ts";
import { csiKind } from "./kind.ts";

const DRIVER = "secrets.example.com";
const inline: Volume = { name: "v", csi: { driver: DRIVER } };
const claimed: Volume = { name: "v", persistentVolumeClaim: { claimName: "data" } };
const claim: PersistentVolumeClaim = {
  metadata: { name: "data", namespace: "default", uid: "claim-1" },
  spec: { volumeName: "pv-1" },
  status: { phase: "Bound" },
};
const persistent: PersistentVolume = {
  metadata: { name: "pv-1" },
  spec: { csi: { driver: DRIVER, volumeHandle: "disk-1" }, claimRef: { uid: "claim-1" } },
};

interface Scene {
  readonly scene: VolumeScene;
  readonly calls: string[];
  /** Where the driver published. */
  readonly targets: string[];
}

async function sceneOf(volume: Volume, spec: CSIDriverSpec): Promise<Scene> {
  const calls: string[] = [];
  const targets: string[] = [];
  const capabilities = { stages: false, mountsWithGroup: false, countsWriters: false };
  const service: CsiNodeService = {
    info: () => Promise.resolve({ nodeId: "n", maxVolumes: 0, topology: {} }),
    capabilities: () => Promise.resolve({ ...capabilities, expands: false, hasStats: false, hasCondition: false }),
    stage: async () => void calls.push("stage"),
    unstage: async () => void calls.push("unstage"),
    publish: async ({ targetPath }) => {
      calls.push("publish");
      targets.push(targetPath);
    },
    unpublish: async () => void calls.push("unpublish"),
    close: () => undefined,
  };
  const drivers = new CsiDrivers({ log: silent, connect: () => service });
  const plugin = { name: DRIVER, endpoint: "/e", socket: "/s", versions: ["1.0.0"] };
  await drivers.register(plugin, { signal: new AbortController().signal });
  const attached = new AttachedVolumes({ clock: new FakeClock(), reported: new LiveValue<readonly string[]>([]) });
  const kind = csiKind({ drivers, attached, nodeName: "node-1" });
  const scene = new VolumeScene([volume], { kinds: [...VOLUME_KINDS, kind] });
  const object = { metadata: { name: DRIVER }, spec: { attachRequired: false, ...spec } };
  scene.objects.put({ kind: "CSIDriver", namespace: "", name: DRIVER }, object);
  scene.objects.put({ kind: "PersistentVolumeClaim", namespace: "default", name: "data" }, claim);
  scene.objects.put({ kind: "PersistentVolume", namespace: "", name: "pv-1" }, persistent);
  return { scene, calls, targets };
}

const modes = { volumeLifecycleModes: ["Ephemeral", "Persistent"] };
for (const volume of [inline, claimed]) {
  const what = volume.csi === undefined ? "behind a claim" : "of a pod";
  test(`a volume ${what} is published again as its driver wants, also by the next agent`, async () => {
    const { scene, calls } = await sceneOf(volume, { ...modes, requiresRepublish: true });
    await scene.prepare();
    await scene.clock.advance(60_000);
    assert.deepEqual(calls.splice(0), ["publish", "publish"]);
    scene.volumes = scene.newAgent();
    scene.volumes.wanted([scene.web]);
    await scene.clock.advance(0);
    assert.deepEqual(calls, ["publish"]);
    await scene.volumes.teardown("uid-of-web", scene.never);
  });

  test(`a volume ${what} whose driver does not want that is left alone by the next agent`, async () => {
    const { scene, calls } = await sceneOf(volume, modes);
    await scene.prepare();
    scene.volumes = scene.newAgent();
    scene.volumes.wanted([scene.web]);
    await scene.clock.advance(120_000);
    assert.deepEqual(calls, ["publish"]);
  });
}

for (const damage of ["intact", "damaged"]) {
  test(`the file of a block device that a driver forgets is removed, with ${damage} metadata`, async () => {
    const { scene, targets } = await sceneOf(claimed, {});
    const block = { ...persistent, spec: { ...persistent.spec, volumeMode: "Block" } };
    scene.objects.put({ kind: "PersistentVolume", namespace: "", name: "pv-1" }, block);
    const wanted = { ...claim, spec: { ...claim.spec, volumeMode: "Block" } };
    scene.objects.put({ kind: "PersistentVolumeClaim", namespace: "default", name: "data" }, wanted);
    const containers = [{ name: "app", volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }];
    await scene.prepare({ ...scene.web, spec: { ...scene.web.spec, containers } });
    const [target = ""] = targets;
    scene.machine.kinds.set(target, "file");
    if (damage === "damaged") scene.machine.files.set(target.replace(/mount$/, "vol_data.json"), "{");
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.equal(scene.machine.kinds.has(target), false);
  });
}
