import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CSI_DRIVER, CsiScene, type CsiSceneOptions } from "../../../test/support/csi-scene.ts";
import { DoomedMachine } from "../../../test/support/doomed-machine.ts";
import { csiError } from "../../adapters/plugins/csi-error.ts";

const BASE = "/root/plugins/kubernetes.io/csi/volumeDevices";
const linkOf = (name: string): string => `/root/pods/uid-of-${name}/volumeDevices/kubernetes.io~csi/pv-1`;
const block = (options: CsiSceneOptions = {}): Promise<CsiScene> =>
  new CsiScene({ ...options, volume: { volumeMode: "Block", ...options.volume } }).register();

describe("a block volume", () => {
  test("lies where Kubernetes has it, and is locked", async () => {
    const scene = await block();
    const web = scene.user("web");
    await scene.prepare(web);
    const publishPath = `${BASE}/publish/pv-1/uid-of-web`;
    const stagingPath = `${BASE}/staging/pv-1`;
    assert.equal(scene.csi.asked("stage")[0]?.["stagingPath"], stagingPath);
    const [published] = scene.csi.asked("publish");
    assert.deepEqual([published?.["stagingPath"], published?.["targetPath"]], [stagingPath, publishPath]);
    assert.deepEqual(published?.["use"], { mode: "SINGLE_NODE_WRITER", filesystem: undefined });
    assert.deepEqual(scene.volumes.source(web, "v"), { kind: "device", path: linkOf("web"), readonly: false });
    assert.equal(scene.machine.links.get(linkOf("web")), publishPath);
    const devicePath = `${BASE}/pv-1/dev/uid-of-web`;
    assert.equal(scene.machine.mounts.get(devicePath)?.source, publishPath);
    assert.deepEqual([...scene.machine.locked], [devicePath]);
    const data = JSON.parse(scene.machine.files.get(`${BASE}/pv-1/data/vol_data.json`) ?? "") as Record<string, string>;
    // No lifecycle: block volumes are always persistent.
    const keys = ["attachmentID", "driverName", "nodeName", "specVolID", "volumeHandle"];
    assert.deepEqual(Object.keys(data), keys);
    assert.deepEqual(scene.events, [
      `SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv-1" globalMapPath "${BASE}/pv-1/dev"`,
      `SuccessfulMountVolume: MapVolume.MapPodDevice succeeded for volume "pv-1" volumeMapPath "/root/pods/uid-of-web/volumeDevices/kubernetes.io~csi"`,
    ]);
  });

  test("of a driver that publishes no device is refused, and nothing is mounted over and over", async () => {
    const scene = await block();
    scene.machine.lockDevice = () => Promise.reject(new Error("losetup: no free loop device"));
    const { kinds } = scene.machine;
    const publishPath = `${BASE}/publish/pv-1/uid-of-a`;
    const set = kinds.set.bind(kinds);
    kinds.set = (path, kind) => set(path, path === publishPath ? "file" : kind);
    const stop = new AbortController();
    const prepared = scene.volumes.prepare(scene.user("a"), { signal: stop.signal }).catch(() => undefined);
    await scene.clock.advance(30_000);
    stop.abort(new Error("deleted"));
    await prepared;
    assert.match(
      scene.events.at(-1) ?? "",
      /MapVolume\.MapBlockVolume failed for volume "pv-1" : .* is not a block device/,
    );
    assert.deepEqual([...scene.machine.mounts.keys()].sort(), [
      `${BASE}/publish/pv-1/uid-of-a`,
      `${BASE}/staging/pv-1`,
    ]);
    await scene.teardown("a");
    assert.deepEqual(scene.leftovers(), []);
  });

  test("is bound once, however often it cannot be locked", async () => {
    const scene = await block();
    const { machine } = scene;
    const bound: string[] = [];
    const bindMount = machine.bindMount.bind(machine);
    machine.bindMount = (source, target) => {
      bound.push(target);
      return bindMount(source, target);
    };
    let failures = 2;
    const lockDevice = machine.lockDevice.bind(machine);
    machine.lockDevice = (path) =>
      failures-- > 0 ? Promise.reject(new Error("losetup: no free loop device")) : lockDevice(path);
    const prepared = scene.prepare(scene.user("a"));
    await scene.clock.advance(30_000);
    await prepared;
    assert.deepEqual(bound, [`${BASE}/pv-1/dev/uid-of-a`]);
  });

  test("that a controller attaches is in use until it is unstaged", async () => {
    const scene = await block({ driver: { attachRequired: true } });
    const name = `kubernetes.io/csi/${CSI_DRIVER}^disk-1`;
    scene.attached.restore([]);
    scene.attach({ attached: true });
    scene.reported.set({ inUse: [name], attached: [name] });
    await scene.prepare(scene.user("a"));
    assert.deepEqual(scene.attached.inUse.current, [name]);
    await scene.teardown("a");
    assert.deepEqual(scene.attached.inUse.current, []);
  });

  test("is staged once for two pods, and goes with the last of them", async () => {
    const scene = await block();
    await scene.prepare(scene.user("a"));
    await scene.prepare(scene.user("b"));
    await scene.teardown("a");
    assert.deepEqual(scene.csi.methods, ["stage", "publish", "publish", "unpublish"]);
    await scene.teardown("b");
    assert.deepEqual(scene.csi.methods.slice(4), ["unpublish", "unstage"]);
    assert.deepEqual([scene.leftovers(), [...scene.machine.locked]], [[], []]);
  });

  test("of a driver that does not stage is published with the staging path all the same", async () => {
    const scene = await block();
    scene.csi.capabilities = { ...scene.csi.capabilities, stages: false };
    await scene.prepare(scene.user("a"));
    await scene.teardown("a");
    assert.deepEqual(scene.csi.methods, ["publish", "unpublish"]);
    assert.equal(scene.csi.asked("publish")[0]?.["stagingPath"], `${BASE}/staging/pv-1`);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("that is refused for certain is not undone; its events name the step", async () => {
    const scene = await block();
    scene.csi.faults.push({ method: "stage", error: csiError({ code: 13, details: "no" }) });
    await scene.refusal(scene.user("a"));
    assert.equal(
      scene.events[0],
      'FailedMapVolume: MapVolume.SetUpDevice failed for volume "pv-1" : rpc error: code = Internal desc = no',
    );
    await scene.teardown("a");
    assert.deepEqual(scene.csi.methods, ["stage"]);
    assert.deepEqual(scene.leftovers(), []);
    scene.csi.faults.push({ method: "publish", error: csiError({ code: 13, details: "no" }) });
    await scene.refusal(scene.user("b"));
    assert.match(scene.events.at(-1) ?? "", /^FailedMapVolume: MapVolume\.MapPodDevice failed for volume "pv-1" : rpc/);
    await scene.teardown("b");
    assert.deepEqual(scene.csi.methods.slice(1), ["stage", "publish", "unstage"]);
    assert.deepEqual(scene.leftovers(), []);
  });

  for (const damage of ["intact", "lost"]) {
    test(`whose driver forgets its file is removed, with ${damage} metadata`, async () => {
      const scene = await block();
      await scene.prepare(scene.user("a"));
      const target = `${BASE}/publish/pv-1/uid-of-a`;
      scene.csi.onCall = (method) => {
        if (method !== "unpublish") return;
        scene.machine.mounts.delete(target);
        void scene.machine.makeFile(target, 0o640);
      };
      scene.csi.faults.push({ method: "unpublish", error: csiError({ code: 5, details: "gone" }) });
      if (damage === "lost") scene.machine.files.set(`${BASE}/pv-1/data/vol_data.json`, "{");
      await scene.teardown("a").catch(() => undefined);
      scene.csi.onCall = () => undefined;
      await scene.teardown("a");
      assert.equal(scene.machine.modes.has(target), false);
      assert.equal(scene.machine.links.has(linkOf("a")), false);
      assert.deepEqual([...scene.machine.locked], []);
    });
  }

  test("whose driver leaves files where it published and staged is removed with them", async () => {
    const scene = await block();
    await scene.prepare(scene.user("a"));
    scene.csi.isUntidy = true;
    await scene.teardown("a");
    assert.deepEqual(scene.csi.methods.slice(2), ["unpublish", "unstage"]);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("that the original kubelet left is torn down by what is on disk", async () => {
    const scene = await block();
    await scene.prepare(scene.user("a"));
    await scene.restart();
    scene.objects.fault = new Error("connection refused");
    assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), []);
    assert.deepEqual(scene.csi.methods.slice(2), ["unpublish", "unstage"]);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("that is still bound for another pod is not unstaged", async () => {
    const scene = await block();
    await scene.prepare(scene.user("a"));
    await scene.machine.makeFile(`${BASE}/pv-1/dev/uid-of-somebody`, 0o640);
    await scene.teardown("a");
    assert.deepEqual(scene.csi.methods, ["stage", "publish", "unpublish"]);
    await scene.machine.removeFile(`${BASE}/pv-1/dev/uid-of-somebody`);
    await scene.clock.advance(1000);
    assert.equal(scene.csi.methods.at(-1), "unstage");
    assert.deepEqual(scene.leftovers(), []);
  });

  test("with ReadWriteOncePod is refused to a second pod", async () => {
    const scene = await block({ volume: { accessModes: ["ReadWriteOncePod"] } });
    await scene.prepare(scene.user("a"));
    assert.match(await scene.refusal(scene.user("b")), /already in use by another pod/);
  });
});

test("an agent that is killed between every two steps of a block volume leaves nothing", async () => {
  for (let calls = 0; ; calls++) {
    const machine = new DoomedMachine();
    const scene = await block({ machine });
    machine.callsLeft = calls;
    await scene.refusal(scene.user("a")).catch(() => undefined);
    await scene.teardown("a").catch(() => undefined);
    const isWhole = machine.callsLeft >= 0;
    machine.callsLeft = Number.POSITIVE_INFINITY;
    await scene.restart();
    scene.objects.fault = new Error("connection refused");
    await scene.volumes.removeOrphans(() => false, scene.never);
    assert.deepEqual([scene.leftovers(), [...machine.locked]], [[], []], `killed after ${calls} calls`);
    if (isWhole) {
      assert.ok(calls > 15, `${calls}`);
      return;
    }
    assert.ok(calls < 100, "it ends");
  }
});
