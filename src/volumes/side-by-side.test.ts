import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CSI_DRIVER, CsiScene } from "../../test/support/csi-scene.ts";
import { manyListeners } from "../lib/abort.ts";

const STAGES = `/root/plugins/kubernetes.io/csi/${CSI_DRIVER}`;

/** The first call of a method does not come back before it is released. */
function hangFirst(scene: CsiScene, method: "unpublish" | "unstage"): () => void {
  let release = (): void => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let isFirst = true;
  scene.csi.onCall = (called) => {
    if (called !== method || !isFirst) return undefined;
    isFirst = false;
    return released;
  };
  return release;
}

describe("what an earlier agent left is removed side by side", () => {
  test("a pod whose driver hangs keeps no other orphan", async () => {
    const scene = await new CsiScene({ driver: { volumeLifecycleModes: ["Ephemeral"] } }).register();
    for (const name of ["a", "b"]) await scene.prepare(scene.user(name, { csi: { driver: CSI_DRIVER } }));
    await scene.restart();
    const release = hangFirst(scene, "unpublish");
    const removing = scene.volumes.removeOrphans(() => false, scene.never);
    await scene.clock.advance(0);
    assert.equal([...scene.machine.mounts.keys()].length, 1, "one hangs, the other is gone");
    assert.deepEqual(await scene.machine.list("/root/pods"), ["uid-of-a"]);
    release();
    assert.deepEqual(await removing, []);
    assert.deepEqual(scene.leftovers(), []);
  });

  const leave = async (scene: CsiScene, disks: readonly string[]): Promise<void> => {
    for (const disk of disks) {
      const text = JSON.stringify({ driverName: CSI_DRIVER, volumeHandle: disk });
      await scene.machine.makeDir(`${STAGES}/${disk}/globalmount`, 0o750);
      await scene.machine.replaceFile(`${STAGES}/${disk}/vol_data.json`, text);
    }
  };

  test("a few stages at a time, and one whose driver hangs makes room for the next after a while", async () => {
    const scene = await new CsiScene().register();
    const disks = Array.from({ length: 20 }, (_none, index) => `disk-${index}`);
    await leave(scene, disks);
    let calls = 0;
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    scene.csi.onCall = (called) => {
      if (called !== "unstage") return undefined;
      calls++;
      return released;
    };
    const removing = scene.volumes.removeOrphans(() => false, { signal: manyListeners().signal });
    await scene.clock.advance(0);
    assert.equal(calls, 8);
    await scene.clock.advance(5000);
    assert.equal(calls, 16);
    release();
    assert.deepEqual(await removing, []);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("a stage whose driver hangs keeps no other", async () => {
    const scene = await new CsiScene().register();
    await leave(scene, ["disk-1", "disk-2"]);
    const release = hangFirst(scene, "unstage");
    const removing = scene.volumes.removeOrphans(() => false, scene.never);
    await scene.clock.advance(0);
    assert.deepEqual(await scene.machine.list(STAGES), ["disk-1"]);
    release();
    assert.deepEqual(await removing, []);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("stages that cannot be listed keep no pod", async () => {
    const scene = await new CsiScene({ driver: { volumeLifecycleModes: ["Ephemeral"] } }).register();
    await scene.prepare(scene.user("a", { csi: { driver: CSI_DRIVER } }));
    await scene.restart();
    const broken = "/root/plugins/kubernetes.io/local-volume/mounts";
    scene.machine.readFaults.set(broken, new Error("input/output error"));
    await scene.machine.makeDir(`${STAGES}/disk-1`, 0o750);
    const left = await scene.volumes.removeOrphans(() => false, scene.never);
    assert.deepEqual(left, ["kubernetes.io/local-volume"], "tried again, as what is left is");
    assert.deepEqual(scene.leftovers(), []);
  });
});
