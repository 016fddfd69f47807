import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClaimedScene } from "../../../test/support/claimed-volume.ts";
import { type DoomedMachine, killedAfterEveryCall } from "../../../test/support/doomed-machine.ts";
import { VolumeMachine } from "../../../test/support/volume-machine.ts";
import { silent } from "../../lib/log.ts";
import type { FCVolumeSource } from "../../model/generated/types.ts";
import { VOLUME_KINDS } from "../kinds/index.ts";
import { blockDiskKind, diskKind } from "./disk-kind.ts";
import { fcDriver } from "./fc.ts";

const PLUGIN = "/root/plugins/kubernetes.io/fc";
const PORT = "50060e801049cfd1";
const OTHER = "50060e801049cfd2";
const WWID = "3600508b400105e210000900000490000";
const byPort: FCVolumeSource = { targetWWNs: [PORT], lun: 0 };

/** A fabric with disks, by the links that udev makes for them. */
class FcScene extends ClaimedScene {
  /** Links that a scan of the buses would make, and the disks that they lead to. */
  readonly fabric = new Map<string, string>();
  readonly present = new Map<string, string>();

  constructor(fc: FCVolumeSource, { machine = new VolumeMachine(), volumeMode = "Filesystem" } = {}) {
    const driver = fcDriver({ log: silent });
    super({ fc, volumeMode }, { machine, kinds: [...VOLUME_KINDS, diskKind(driver), blockDiskKind(driver)] });
    this.machine.modes.set("/sys/class/scsi_host/host3/scan", 0o200);
    this.machine.realPath = async (path) => this.present.get(path) ?? path;
    this.machine.onRun = (command, input) => {
      const path = command.at(-1) ?? "";
      if (path.endsWith("/scan") && input === "- - -") for (const [link, disk] of this.fabric) this.add(link, disk);
      const gone = /^\/sys\/block\/(\w+)\/device\/delete$/.exec(path)?.[1];
      if (gone !== undefined) this.remove(`/dev/${gone}`);
      return { code: 0, stdout: "", stderr: "" };
    };
  }

  add(link: string, disk: string): void {
    this.present.set(link, disk);
    for (const path of [link, `/sys/block/${disk.slice(5)}/device/delete`]) this.machine.modes.set(path, 0o600);
  }

  remove(disk: string): void {
    for (const [link, one] of [...this.present]) {
      if (one !== disk) continue;
      this.present.delete(link);
      this.machine.modes.delete(link);
    }
    this.machine.modes.delete(`/sys/block/${disk.slice(5)}/device/delete`);
  }

  /** As after udev had its moment. */
  async ready(name: string): Promise<void> {
    const prepared = this.prepare(this.user(name));
    await this.clock.advance(1000);
    await prepared;
  }

  commands(): readonly string[] {
    return this.machine.done.filter((line) => line.startsWith("run ")).map((line) => line.slice(4));
  }
}

describe("a Fibre Channel disk", () => {
  const cases: readonly {
    readonly name: string;
    readonly source: FCVolumeSource;
    readonly link: string;
    readonly stage: string;
  }[] = [
    {
      name: "by the port of its target",
      source: byPort,
      link: `/dev/disk/by-path/pci-0000:41:00.0-fc-0x${PORT}-lun-0`,
      stage: `${PORT}-lun-0`,
    },
    {
      name: "by one of several ports",
      source: { targetWWNs: [OTHER, PORT], lun: 2 },
      link: `/dev/disk/by-path/fc-0x${PORT}-lun-2`,
      stage: `${OTHER}-${PORT}-lun-2`,
    },
    { name: "by its identifier", source: { wwids: [WWID] }, link: `/dev/disk/by-id/scsi-${WWID}`, stage: WWID },
    {
      name: "by an identifier with a blank",
      source: { wwids: ["VENDOR 42"] },
      link: "/dev/disk/by-id/scsi-VENDOR_42",
      stage: "VENDOR_42",
    },
  ];
  for (const { name, source, link, stage } of cases) {
    test(`is found ${name}, after a scan of the buses`, async () => {
      const scene = new FcScene(source);
      scene.fabric.set(link, "/dev/sdq");
      // One that only looks alike.
      scene.fabric.set(`${link}1`, "/dev/sdz");
      await scene.ready("a");
      assert.equal(scene.machine.mounts.get(`${PLUGIN}/${stage}`)?.source, "/dev/sdq");
      assert.deepEqual(scene.commands(), ["tee -- /sys/class/scsi_host/host3/scan < - - -"]);
      await scene.teardown("a");
      assert.deepEqual(scene.commands().slice(1), [
        "blockdev --flushbufs /dev/sdq",
        "tee -- /sys/block/sdq/device/delete < 1",
      ]);
      assert.deepEqual(scene.left("pv-1", `/fc/${stage}`), []);
    });
  }

  for (const { name, source, link } of [
    { name: "unit", source: { targetWWNs: [PORT], lun: 1 }, link: `/dev/disk/by-path/fc-0x${PORT}-lun-10` },
    { name: "partition", source: byPort, link: `/dev/disk/by-path/fc-0x${PORT}-lun-0-part1` },
    { name: "identifier", source: { wwids: [WWID] }, link: `/dev/disk/by-id/scsi-${WWID}1` },
  ]) {
    test(`is never another ${name} whose link begins with the same words`, async () => {
      const scene = new FcScene(source);
      scene.fabric.set(link, "/dev/sdz");
      const prepared = scene.prepare(scene.user("a"));
      prepared.catch(() => undefined);
      await scene.clock.advance(5000);
      assert.match(scene.events.join(), /no fc disk found/);
      await scene.teardown("a");
    });
  }

  test("is the multipath device that appears a moment after the scan", async () => {
    const scene = new FcScene(byPort);
    scene.fabric.set(`/dev/disk/by-path/fc-0x${PORT}-lun-0`, "/dev/sdq");
    const prepared = scene.prepare(scene.user("a"));
    await scene.clock.advance(500);
    scene.machine.modes.set("/sys/block/dm-1/slaves/sdq", 0o777);
    await scene.clock.advance(500);
    await prepared;
    assert.equal(scene.machine.mounts.get(`${PLUGIN}/${PORT}-lun-0`)?.source, "/dev/dm-1");
  });

  test("whose data is still written back is not taken away", async () => {
    const scene = new FcScene(byPort);
    scene.fabric.set(`/dev/disk/by-path/fc-0x${PORT}-lun-0`, "/dev/sdq");
    await scene.ready("a");
    const before = scene.commands().length;
    scene.machine.held.add("/dev/sdq");
    await scene.teardown("a");
    assert.deepEqual(scene.commands().slice(before), []);
    scene.machine.held.clear();
    await scene.clock.advance(60_000);
    assert.equal(scene.commands().at(-1), "tee -- /sys/block/sdq/device/delete < 1");
  });

  test("that the kernel does not let go is tried again, and its directory stays until then", async () => {
    const scene = new FcScene(byPort);
    scene.fabric.set(`/dev/disk/by-path/fc-0x${PORT}-lun-0`, "/dev/sdq");
    await scene.ready("a");
    const { onRun } = scene.machine;
    scene.machine.onRun = (command, input) =>
      command.at(-1)?.endsWith("/delete") === true
        ? { code: 1, stdout: "", stderr: "tee: Device or resource busy" }
        : onRun(command, input);
    await scene.teardown("a");
    assert.notDeepEqual(scene.left("pv-1", `/fc/${PORT}-lun-0`), []);
    scene.machine.onRun = onRun;
    await scene.clock.advance(60_000);
    assert.deepEqual(scene.left("pv-1", `/fc/${PORT}-lun-0`), []);
  });

  test("over several paths is its multipath device, at once if it is there", async () => {
    const scene = new FcScene(byPort);
    scene.add(`/dev/disk/by-path/fc-0x${PORT}-lun-0`, "/dev/sdq");
    for (const slave of ["sdq", "sdr"]) scene.machine.modes.set(`/sys/block/dm-1/slaves/${slave}`, 0o777);
    scene.machine.modes.set("/sys/block/sdr/device/delete", 0o200);
    await scene.prepare(scene.user("a"));
    assert.equal(scene.machine.mounts.get(`${PLUGIN}/${PORT}-lun-0`)?.source, "/dev/dm-1");
    assert.deepEqual(scene.commands(), []);
    await scene.teardown("a");
    assert.deepEqual(scene.commands(), [
      "multipath -f /dev/dm-1",
      "blockdev --flushbufs /dev/sdq",
      "tee -- /sys/block/sdq/device/delete < 1",
      "blockdev --flushbufs /dev/sdr",
      "tee -- /sys/block/sdr/device/delete < 1",
    ]);
  });

  test("that does not exist is an error in the words of Kubernetes", async () => {
    const scene = new FcScene(byPort);
    const prepared = scene.prepare(scene.user("a"));
    prepared.catch(() => undefined);
    await scene.clock.advance(5000);
    assert.deepEqual(scene.events, [
      'FailedMount: MountVolume.WaitForAttach failed for volume "pv-1" : no fc disk found',
    ]);
    await scene.teardown("a");
  });

  for (const [name, source, words] of [
    ["without a name", { lun: 0 }, /no fc disk information found/],
    ["with a name that leaves its directory", { wwids: ["../../etc"] }, /fc: "\.\.\/\.\.\/etc" is no name/],
    ["with the name of the directory above", { wwids: [".."] }, /fc: "\.\." is no name/],
  ] as const) {
    test(`${name} is refused`, async () => assert.match(await new FcScene(source).refusal(), words));
  }

  for (const volumeMode of ["Filesystem", "Block"]) {
    const made = (machine: DoomedMachine): FcScene => {
      const scene = new FcScene(byPort, { machine, volumeMode });
      scene.fabric.set(`/dev/disk/by-path/fc-0x${PORT}-lun-0`, "/dev/sdq");
      return scene;
    };
    const assertGone = (of: FcScene, round: string): void =>
      assert.deepEqual([of.left("pv-1", `${PORT}-lun-0`), [...of.present]], [[], []], round);

    test(`volumeMode ${volumeMode}, killed after every call of setting up and tearing down: nothing is left`, async () => {
      const calls = await killedAfterEveryCall({
        scene: made,
        work: async (of) => {
          const abort = new AbortController();
          const prepared = of.volumes.prepare(of.user("a"), { signal: abort.signal }).catch(() => undefined);
          await of.clock.advance(1000);
          abort.abort(new Error("given up"));
          await prepared;
          await of.teardown("a");
        },
        next: async (of, round) => {
          of.loseApiServer();
          assert.deepEqual(await of.volumes.removeOrphans(() => false, of.never), [], round);
          assertGone(of, round);
        },
      });
      assert.ok(calls >= 12, `${calls}`);
    });
  }
});

describe("the name under which the attach controller knows a disk", () => {
  const cases: readonly { name: string; fc: FCVolumeSource; want: string }[] = [
    { name: "by its port", fc: byPort, want: `kubernetes.io/fc/[${PORT}]:0` },
    { name: "by its ports", fc: { targetWWNs: [PORT, OTHER], lun: 7 }, want: `kubernetes.io/fc/[${PORT} ${OTHER}]:7` },
    { name: "by its own identifier", fc: { wwids: [WWID] }, want: `kubernetes.io/fc/[${WWID}]` },
  ];
  for (const { name, fc, want } of cases) {
    test(`${name} is that of its volume and of its stage`, async () => {
      const driver = fcDriver({ log: silent });
      const scene = new FcScene(fc);
      // Reason: nothing else of the volume tells which disk it is.
      const of = { pod: scene.user("a"), volume: { name: "v", fc }, directory: "" } as unknown as Parameters<
        NonNullable<typeof driver.uniqueName>
      >[0];
      assert.equal(driver.uniqueName?.(of), want);
      const metadata = await driver.metadata(of, { host: scene.machine.asHost() } as never, scene.never);
      for (const mode of ["Filesystem", "Block"] as const) {
        assert.deepEqual(driver.uniqueNames?.(`/root/plugins/${driver.directory(metadata, mode)}`), [want]);
      }
    });
  }

  test("stages with a filesystem are listed without the directory of block devices", async () => {
    const driver = fcDriver({ log: silent });
    const { machine } = new FcScene(byPort);
    await machine.makeDir(`${PLUGIN}/${PORT}-lun-0`, 0o750);
    await machine.makeDir(`${PLUGIN}/volumeDevices/${OTHER}-lun-1`, 0o750);
    const list = (mode: "Filesystem" | "Block") => driver.list("/root/plugins", mode, machine.asHost());
    assert.deepEqual(await list("Filesystem"), [`kubernetes.io/fc/${PORT}-lun-0`]);
    assert.deepEqual(await list("Block"), [`kubernetes.io/fc/volumeDevices/${OTHER}-lun-1`]);
  });
});
