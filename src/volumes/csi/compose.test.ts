import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeObjects } from "../../../test/support/objects.ts";
import { VolumeMachine } from "../../../test/support/volume-machine.ts";
import { FakeClock } from "../../lib/clock.ts";
import { type Logger, silent } from "../../lib/log.ts";
import { Metrics } from "../../lib/metrics.ts";
import { VolumeLabels } from "../selinux/volume-label.ts";
import { composeCsi } from "./compose.ts";
import { stageDirectory } from "./volume.ts";

function composed(host: VolumeMachine, log: Logger = silent) {
  const clock = new FakeClock();
  const metrics = new Metrics();
  const stop = new AbortController();
  const csi = composeCsi({
    clock,
    log,
    host,
    nodeName: "node-1",
    rootDir: "/root",
    signal: stop.signal,
    reportsHealth: false,
    metrics,
    objects: new FakeObjects(),
    selinux: new VolumeLabels({ contexts: undefined, isForAllModes: false }),
  });
  return { csi, clock, metrics, stop };
}

const DRIVER = "disk.example.com";
const named = (handle: string): string => `kubernetes.io/csi/${DRIVER}^${handle}`;
const stageOf = (volumeHandle: string): string =>
  `/root/plugins/${stageDirectory({ driverName: DRIVER, volumeHandle })}`;

const EIO = new Error("input/output error");
const CASES: readonly (readonly [string, Readonly<Record<string, Error>>])[] = [
  ["if the metadata of its stage is damaged", {}],
  [
    "if metadata of others cannot be read at all",
    {
      [`${stageOf("disk-2")}/vol_data.json`]: EIO,
      "/root/pods/uid-b/volumes/kubernetes.io~csi/pv-3/vol_data.json": EIO,
    },
  ],
];

for (const [name, faults] of CASES)
  test(`what an earlier agent left mounted is in use, also ${name}`, async () => {
    const host = new VolumeMachine();
    const text = (volumeHandle: string): string => JSON.stringify({ driverName: DRIVER, volumeHandle });
    await host.replaceFile(`${stageOf("disk-1")}/vol_data.json`, text("disk-1"));
    await host.replaceFile(`${stageOf("disk-2")}/vol_data.json`, "");
    await host.replaceFile("/root/pods/uid-a/volumes/kubernetes.io~csi/pv-2/vol_data.json", text("disk-2"));
    await host.replaceFile("/root/pods/uid-b/volumes/kubernetes.io~csi/pv-3/vol_data.json", "{");
    const inline = { driverName: DRIVER, volumeHandle: "csi-1", volumeLifecycleMode: "Ephemeral" };
    await host.replaceFile("/root/pods/uid-b/volumes/kubernetes.io~csi/v/vol_data.json", JSON.stringify(inline));
    for (const [path, fault] of Object.entries(faults)) host.readFaults.set(path, fault);
    const { csi, clock, metrics, stop } = composed(host);
    assert.equal(csi.volumesInUse.current, undefined);
    const running = Promise.all(csi.loops.map((loop) => loop.run(stop.signal)));
    await clock.advance(0);
    assert.deepEqual(csi.volumesInUse.current, ["disk-1", "disk-2"].map(named));
    const { body } = await metrics.expose((name) => name.startsWith("reconstruct"));
    assert.match(body, /reconstruct_volume_operations_total 3\n/);
    assert.match(body, /reconstruct_volume_operations_errors_total 1\n/);
    stop.abort();
    await running;
  });

test("a pod whose volumes cannot be listed does not keep what others have mounted from being reported", async () => {
  const host = new VolumeMachine();
  const text = (volumeHandle: string): string => JSON.stringify({ driverName: DRIVER, volumeHandle });
  await host.replaceFile(`${stageOf("disk-1")}/vol_data.json`, text("disk-1"));
  await host.replaceFile("/root/pods/uid-a/volumes/kubernetes.io~csi/pv-1/vol_data.json", text("disk-1"));
  await host.replaceFile("/root/pods/uid-b/volumes/kubernetes.io~csi/pv-2/vol_data.json", text("disk-2"));
  host.readFaults.set("/root/pods/uid-b/volumes/kubernetes.io~csi", EIO);
  const { csi, clock, metrics, stop } = composed(host);
  const running = Promise.all(csi.loops.map((loop) => loop.run(stop.signal)));
  await clock.advance(0);
  assert.deepEqual(csi.volumesInUse.current, [named("disk-1")]);
  const { body } = await metrics.expose((name) => name.startsWith("reconstruct"));
  assert.match(body, /reconstruct_volume_operations_errors_total 1\n/);
  stop.abort();
  await running;
});

test("stages that cannot be listed are tried again each second, and the same failure is logged once", async () => {
  const host = new VolumeMachine();
  await host.replaceFile(
    `${stageOf("disk-1")}/vol_data.json`,
    JSON.stringify({ driverName: DRIVER, volumeHandle: "d" }),
  );
  host.readFaults.set("/root/plugins/kubernetes.io/csi", EIO);
  const warned: string[] = [];
  const log: Logger = { ...silent, warn: (message) => void warned.push(message) };
  const { csi, clock, stop } = composed(host, log);
  const running = Promise.all(csi.loops.map((loop) => loop.run(stop.signal)));
  await clock.advance(5000);
  assert.equal(csi.volumesInUse.current, undefined);
  assert.deepEqual(warned, ["Failed to list staged CSI volumes"]);
  host.readFaults.clear();
  await clock.advance(1000);
  assert.deepEqual(csi.volumesInUse.current, [named("d")]);
  stop.abort();
  await running;
});

describe("a stage of which all metadata is damaged", () => {
  const legible = JSON.stringify({ driverName: DRIVER, volumeHandle: "known" });
  const BLOCK = "/root/plugins/kubernetes.io/csi/volumeDevices";
  const reported = {
    inUse: [named("known"), named("lost"), "kubernetes.io/iscsi/other"],
    attached: [named("known"), named("lost"), named("elsewhere"), "kubernetes.io/iscsi/other"],
  };
  const files = (entries: Readonly<Record<string, string>>) => async (host: VolumeMachine) => {
    for (const [path, text] of Object.entries(entries)) await host.replaceFile(path, text);
  };
  const cases: readonly {
    readonly name: string;
    left(host: VolumeMachine): Promise<void>;
    readonly want: readonly string[];
  }[] = [
    {
      name: "is known by its directory, which is named after the handle",
      left: files({ [`${stageOf("lost")}/vol_data.json`]: "" }),
      want: ["lost"],
    },
    {
      name: "is known too if its metadata names no volume",
      left: files({ [`${stageOf("lost")}/vol_data.json`]: "{}" }),
      want: ["lost"],
    },
    {
      name: "is known too if its metadata is lost while it is mounted",
      left: async (host) => {
        await host.makeDir(`${stageOf("lost")}/globalmount`, 0o750);
        await host.mountTmpfs(`${stageOf("lost")}/globalmount`, { mode: 0o755 });
      },
      want: ["lost"],
    },
    {
      name: "is not in use if there is neither metadata nor a mount",
      left: (host) => host.makeDir(`${stageOf("lost")}/globalmount`, 0o750),
      want: [],
    },
    {
      name: "is of no volume if nothing of its handle is attached",
      left: files({ [`${stageOf("detached")}/vol_data.json`]: "" }),
      want: [],
    },
    {
      name: "is any volume of CSI that no other stage uses, if it is a block volume",
      left: async (host) => {
        await host.makeDir(`${BLOCK}/staging/pv-1`, 0o750);
        await host.replaceFile(`${BLOCK}/pv-1/data/vol_data.json`, "");
      },
      want: ["elsewhere", "lost"],
    },
  ];
  for (const { name, left, want } of cases) {
    test(name, async () => {
      const host = new VolumeMachine();
      await host.replaceFile(`${stageOf("known")}/vol_data.json`, legible);
      await left(host);
      const { csi, clock, stop } = composed(host);
      const running = Promise.all(csi.loops.map((loop) => loop.run(stop.signal)));
      await clock.advance(0);
      if (want.length > 0) assert.equal(csi.volumesInUse.current, undefined, "nothing is claimed before it is known");
      csi.nodeVolumes(reported);
      assert.deepEqual(csi.volumesInUse.current, [...want, "known"].map(named).sort());
      stop.abort();
      await running;
    });
  }
});
