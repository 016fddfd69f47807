import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CSI_DRIVER, CsiScene } from "../../../test/support/csi-scene.ts";
import { VolumeMachine } from "../../../test/support/volume-machine.ts";
import { TimeLimitError } from "../../lib/abort.ts";

const MOUNT = "/root/pods/uid-of-a/volumes/kubernetes.io~csi/pv-1/mount";

/** A machine on which whoever looks at a mount in the agent's own process, while its server is gone, never comes back. */
class GoneServer extends VolumeMachine {
  isGone = false;
  readonly hangs: string[] = [];

  private hang<T>(path: string): Promise<T> | undefined {
    if (!this.isGone || !this.mounts.has(path)) return undefined;
    this.hangs.push(path);
    return new Promise(() => undefined);
  }

  override makeDir(path: string, mode: number): Promise<void> {
    return this.hang<void>(path) ?? super.makeDir(path, mode);
  }

  override isMountPoint(path: string): Promise<boolean> {
    return this.hang<boolean>(path) ?? super.isMountPoint(path);
  }

  override unmount(path: string): Promise<void> {
    return this.hang<void>(path) ?? super.unmount(path);
  }

  override kindOf(path: string): ReturnType<VolumeMachine["kindOf"]> {
    if (this.isGone && this.mounts.has(path)) return Promise.reject(new TimeLimitError(10_000));
    return super.kindOf(path);
  }

  override async unmountByCommand(path: string, options: { mayForce?: boolean }): Promise<void> {
    this.isGone = false;
    assert.ok(options.mayForce, "one whose server is gone ends by force alone");
    await super.unmountByCommand(path, options);
  }
}

async function sceneOf(filesystem: string): Promise<{ scene: CsiScene; machine: GoneServer }> {
  const machine = new GoneServer();
  const scene = await new CsiScene({ machine, driver: { fsGroupPolicy: "File" } }).register();
  scene.csi.filesystem = filesystem;
  return { scene, machine };
}

describe("a CSI volume on a filesystem of a server", () => {
  for (const filesystem of ["nfs4", "cifs", "ceph", "fuse.s3fs"]) {
    test(`${filesystem} that is gone: a container does not start, and no thread of the agent hangs`, async () => {
      const { scene, machine } = await sceneOf(filesystem);
      await scene.prepare(scene.user("a"));
      machine.isGone = true;
      assert.match(await scene.refusal(scene.user("a")), /does not answer/);
      assert.deepEqual(machine.hangs, []);
    });
  }

  test("that is gone: the next agent looks for it by the kernel's table, and stages it again for another pod", async () => {
    const { scene, machine } = await sceneOf("nfs4");
    await scene.prepare(scene.user("a"));
    machine.isGone = true;
    await scene.restart();
    scene.volumes.wanted([scene.user("a")]);
    await scene.clock.advance(0);
    assert.equal(await scene.refusal(scene.user("b")), "");
    assert.deepEqual(machine.hangs, []);
    assert.equal(scene.volumes.place(scene.user("a"), "v")?.path, MOUNT, "found");
  });

  test("is given to the group of the pod by a child process, one on a disk is not", async () => {
    const groups: string[] = [];
    for (const filesystem of ["nfs4", "ext4"]) {
      const { scene, machine } = await sceneOf(filesystem);
      const user = scene.user("a");
      await scene.prepare({ ...user, spec: { ...user.spec, securityContext: { fsGroup: 7 } } });
      groups.push(...machine.done.filter((line) => line.startsWith("group ")));
    }
    assert.deepEqual(groups, [`group ${MOUNT} by a child`, `group ${MOUNT}`]);
  });

  test("that is gone and whose metadata are damaged is unmounted by a command", async () => {
    const { scene, machine } = await sceneOf("nfs4");
    await scene.prepare(scene.user("a"));
    scene.machine.files.set(MOUNT.replace(/mount$/, "vol_data.json"), "");
    machine.isGone = true;
    await scene.teardown("a");
    assert.deepEqual(machine.hangs, []);
    assert.equal(machine.mounts.has(MOUNT), false);
  });

  test("that its driver leaves mounted when it is gone is reported, and never looked at", async () => {
    const { scene, machine } = await sceneOf("nfs4");
    await scene.prepare(scene.user("a"));
    machine.isGone = true;
    const { unpublish } = scene.drivers.get(CSI_DRIVER).service;
    scene.drivers.get(CSI_DRIVER).service.unpublish = () => Promise.resolve();
    await assert.rejects(scene.teardown("a"), /the driver left .*\/mount mounted/);
    assert.deepEqual(machine.hangs, []);
    scene.drivers.get(CSI_DRIVER).service.unpublish = unpublish;
  });
});
