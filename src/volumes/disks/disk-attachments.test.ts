import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClaimedScene } from "../../../test/support/claimed-volume.ts";
import { FakeIscsi } from "../../../test/support/fake-iscsi.ts";
import { FakeClock } from "../../lib/clock.ts";
import { LiveValue } from "../../lib/live.ts";
import { silent } from "../../lib/log.ts";
import { VOLUME_KINDS } from "../kinds/index.ts";
import { allInUse } from "../node-volumes.ts";
import { VolumePendingError } from "../volume-error.ts";
import type { NodeVolumes } from "../volumes-in-use.ts";
import { composeDisks } from "./compose.ts";
import { DiskAttachments } from "./disk-attachments.ts";

const DISK = { name: "p/disk", stage: "/stage" };
const never = { signal: new AbortController().signal };

function attachments(isManaged = true) {
  const clock = new FakeClock();
  const reported = new LiveValue<NodeVolumes>({ inUse: [], attached: [] });
  const made = new DiskAttachments({ clock, reported, isManaged: () => isManaged });
  return { clock, reported, made };
}

describe("a disk that the attach controller attaches", () => {
  test("is reported in use first, and mounted once the node has it as both attached and in use", async () => {
    const { clock, reported, made } = attachments();
    made.restore([]);
    let device: string | undefined;
    void made.wait(DISK, never).then((found) => {
      device = found;
    });
    assert.deepEqual(made.inUse.current, ["p/disk"]);
    reported.set({ inUse: [], attached: ["p/disk"] });
    await clock.advance(0);
    reported.set({ inUse: ["p/disk"], attached: [] });
    await clock.advance(0);
    assert.equal(device, undefined);
    reported.set({ inUse: ["p/disk"], attached: ["p/disk"], devicePaths: { "p/disk": "/dev/sdx" } });
    await clock.advance(0);
    assert.equal(device, "/dev/sdx");
    assert.equal(clock.waiting, 0);
  });

  const cases: readonly (readonly [string, NodeVolumes, RegExp])[] = [
    ["is not reported yet", { inUse: [], attached: [] }, /not been added to the list of VolumesInUse/],
    ["is not attached yet", { inUse: ["p/disk"], attached: [] }, /Volume not attached according to node status/],
  ];
  for (const [name, now, words] of cases) {
    test(`${name}: says so after 10 s, and that is no failure`, async () => {
      const { clock, reported, made } = attachments();
      made.restore([]);
      reported.set(now);
      const waited = made.wait(DISK, never).catch((error: unknown) => error);
      await clock.advance(10_000);
      const error = await waited;
      assert.ok(error instanceof VolumePendingError);
      assert.match(error.message, words);
    });
  }

  test("nothing is reported before it is known what an earlier agent left, and what is detached meanwhile is not", () => {
    const { made } = attachments();
    assert.equal(made.inUse.current, undefined);
    made.remove({ name: "p/gone", stage: "/gone" });
    made.restore([
      { name: "p/gone", stage: "/gone" },
      { name: "p/kept", stage: "/kept" },
    ]);
    assert.deepEqual(made.inUse.current, ["p/kept"]);
    made.remove({ name: "p/kept", stage: "/kept" });
    assert.deepEqual(made.inUse.current, []);
  });

  test("is in use until the last of its stages is gone: by two interfaces it is mounted twice", async () => {
    const { reported, made } = attachments();
    const other = { ...DISK, stage: "/other" };
    made.restore([other]);
    reported.set({ inUse: ["p/disk"], attached: ["p/disk"] });
    await made.wait(DISK, never);
    made.remove(other);
    made.remove(other);
    assert.deepEqual(made.inUse.current, ["p/disk"]);
    made.remove(DISK);
    assert.deepEqual(made.inUse.current, []);
  });

  test("is not waited for where no controller attaches, and not reported", async () => {
    const { made } = attachments(false);
    made.restore([]);
    assert.equal(await made.wait(DISK, never), "");
    assert.deepEqual(made.inUse.current, []);
  });

  test("volumes in use are unknown until every kind knows its own", () => {
    const [one, two] = [
      new LiveValue<readonly string[] | undefined>(["b"]),
      new LiveValue<readonly string[] | undefined>(undefined),
    ];
    const all = allInUse([one, two], never);
    assert.equal(all.current, undefined);
    two.set(["a"]);
    assert.deepEqual(all.current, ["a", "b"]);
    one.set([]);
    assert.deepEqual(all.current, ["a"]);
  });
});

test("an iSCSI disk is in use on the node until it is detached, also over a restart of the agent", async () => {
  const iqn = "iqn.2026-01.com.example:disks";
  const name = `kubernetes.io/iscsi/10.0.0.9:${iqn}:1`;
  const made = new ClaimedScene({ iscsi: { targetPortal: "10.0.0.9", iqn, lun: 1 } }, { kinds: [] });
  new FakeIscsi(made.machine).targets.push({ portal: "10.0.0.9:3260", iqn, luns: [1] });
  const start = async () => {
    const { machine: host, clock } = made;
    const controllerAttaches = (): boolean => true;
    const paths = { rootDir: "/root", volumePluginDir: "/nowhere" };
    const disks = composeDisks({ host, clock, log: silent, ...paths, nodeName: "here", controllerAttaches });
    const stop = new AbortController();
    const running = disks.loops[0]?.run(stop.signal);
    await clock.advance(0);
    made.restart([...VOLUME_KINDS, ...disks.kinds]);
    const end = (): Promise<void> | undefined => {
      stop.abort(new Error("stopped"));
      return running;
    };
    return { ...disks, end };
  };
  const first = await start();
  const prepared = made.prepare(made.user("a"));
  await made.clock.advance(0);
  assert.deepEqual(first.volumesInUse.current, [name]);
  assert.equal(made.machine.mounts.size, 0, "nothing is mounted before");
  first.nodeVolumes({ inUse: [name], attached: [name] });
  await prepared;
  await first.end();
  const second = await start();
  assert.ok(second.volumesInUse.current?.includes(name));
  await made.teardown("a");
  assert.deepEqual(second.volumesInUse.current, []);
  await second.end();
});
