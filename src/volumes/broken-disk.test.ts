import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CSI_DRIVER, CsiScene, type CsiSceneOptions } from "../../test/support/csi-scene.ts";
import { HostError } from "../adapters/host/host-error.ts";

const registered = (options?: CsiSceneOptions): Promise<CsiScene> => new CsiScene(options).register();
const directoryOf = (name: string): string => `/root/pods/uid-of-${name}/volumes/kubernetes.io~csi/pv-1`;
const fileOf = (name: string): string => `${directoryOf(name)}/vol_data.json`;
const EIO = new HostError("Unknown", "read: input/output error");
const FIFO = new HostError("InvalidArgument", "open: not a regular file");
/** A pod of an earlier agent whose volume is of the same kind, on a disk of its own. */
const OTHER = "/root/pods/uid-of-other/volumes/kubernetes.io~csi/pv-9";

async function withOther(scene: CsiScene, fault: Error, path = `${OTHER}/vol_data.json`): Promise<CsiScene> {
  await scene.machine.makeDir(OTHER, 0o750);
  await scene.machine.replaceFile(`${OTHER}/vol_data.json`, "{}");
  scene.machine.readFaults.set(path, fault);
  return scene;
}

describe("metadata of another pod that cannot be read", () => {
  const once = { volume: { accessModes: ["ReadWriteOncePod"] } };
  for (const [name, fault, path] of [
    ["with EIO", EIO, undefined],
    ["because a FIFO is in its place", FIFO, undefined],
    ["because its directory gives EIO", EIO, "/root/pods/uid-of-other/volumes/kubernetes.io~csi"],
  ] as const) {
    test(`${name} keeps no pod from a volume that only one may use`, async () => {
      const scene = await withOther(await registered(once), fault, path);
      assert.equal(await scene.refusal(scene.user("a")), "");
      assert.match(await scene.refusal(scene.user("b")), /already in use by another pod/);
    });

    test(`${name} keeps stages, which it may use, until it can be read`, async () => {
      const scene = await withOther(await registered(), fault, path);
      await scene.prepare(scene.user("a"));
      await scene.teardown("a");
      assert.deepEqual(scene.csi.methods, ["stage", "publish", "unpublish"]);
      const text = JSON.stringify({ driverName: CSI_DRIVER, volumeHandle: "disk-9" });
      await scene.machine.replaceFile(`${OTHER}/vol_data.json`, text);
      scene.machine.readFaults.clear();
      await scene.volumes.removeOrphans((uid) => uid === "uid-of-other", scene.never);
      assert.equal(scene.csi.methods.at(-1), "unstage");
    });
  }
});

describe("a volume that only one pod may use", () => {
  for (const [name, fault, path] of [
    ["whose metadata gives EIO", EIO, fileOf("a")],
    ["whose metadata is a FIFO", FIFO, fileOf("a")],
    ["whose directory gives EIO", EIO, "/root/pods/uid-of-a/volumes/kubernetes.io~csi"],
  ] as const) {
    test(`and that a pod has ${name} is refused to another by the next agent`, async () => {
      const scene = await registered({ volume: { accessModes: ["ReadWriteOncePod"] } });
      await scene.prepare(scene.user("a"));
      scene.machine.readFaults.set(path, fault);
      await scene.restart();
      assert.match(await scene.refusal(scene.user("b")), /already in use by another pod/);
    });
  }
});

describe("metadata of a volume that is in use", () => {
  for (const [name, damage] of [
    ["cut off", (scene: CsiScene) => scene.machine.files.set(fileOf("a"), '{"driverName"')],
    ["replaced by a FIFO", (scene: CsiScene) => scene.machine.readFaults.set(fileOf("a"), FIFO)],
  ] as const) {
    test(`${name} are written again by the next agent, so that other stages are not kept for it`, async () => {
      const scene = await registered();
      await scene.prepare(scene.user("a"));
      const intact = scene.machine.files.get(fileOf("a"));
      damage(scene);
      await scene.restart();
      scene.volumes.wanted([scene.user("a")]);
      await scene.clock.advance(0);
      assert.equal(await scene.machine.readFile(fileOf("a")), intact);
      await scene.teardown("a");
      assert.deepEqual(scene.csi.methods.slice(-2), ["unpublish", "unstage"]);
      assert.deepEqual(scene.leftovers(), []);
    });
  }
});

describe("a FIFO in the place of metadata", () => {
  test("is replaced when the volume is set up, and goes with it", async () => {
    const scene = await registered();
    await scene.machine.makeDir(directoryOf("a"), 0o750);
    scene.machine.readFaults.set(fileOf("a"), FIFO);
    assert.equal(await scene.refusal(scene.user("a")), "");
    assert.match((await scene.machine.readFile(fileOf("a"))) ?? "", /disk-1/);
    await scene.teardown("a");
    assert.deepEqual(scene.leftovers(), []);
  });
});

describe("metadata that name a place outside of the stages", () => {
  for (const [name, driverName] of [
    ["above them", "../../../../srv"],
    ["of no name", ""],
  ] as const) {
    test(`${name} are damaged: nothing is unmounted or removed there, and the volume goes`, async () => {
      const scene = await registered();
      await scene.prepare(scene.user("a"));
      const text = JSON.stringify({ driverName, volumeHandle: "disk-1", volumeLifecycleMode: "Persistent" });
      await scene.machine.replaceFile(fileOf("a"), text);
      await scene.restart();
      const before = scene.machine.done.length;
      await scene.teardown("a");
      assert.deepEqual(
        scene.machine.done.slice(before).filter((line) => line.includes("..") || line.includes("csi//")),
        [],
      );
      await scene.clock.advance(1000);
      assert.deepEqual(scene.csi.methods.slice(-1), ["unstage"]);
      assert.deepEqual(scene.leftovers(), []);
    });
  }
});
