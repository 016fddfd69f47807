import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CSI_DRIVER, CsiScene, type CsiSceneOptions } from "../../../test/support/csi-scene.ts";
import { DoomedMachine } from "../../../test/support/doomed-machine.ts";
import { csiError } from "../../adapters/plugins/csi-error.ts";

const STAGE = `/root/plugins/kubernetes.io/csi/${CSI_DRIVER}`;
/** SHA-256 of `disk-1`. */
const DISK_1 = "fec50738aa755e2c8649e35886a978c82d36d85c87a17d1be2fbfe3ceda0613b";
const CODES = Array.from({ length: 16 }, (_, at) => at + 1);
const refusal = (code: number): Error => csiError({ code, details: "out of order" });
const isUncertain = (code: number): boolean => [1, 4, 8, 10, 14].includes(code);
const registered = (options?: CsiSceneOptions): Promise<CsiScene> => new CsiScene(options).register();

describe("a driver that answers with every code", () => {
  for (const code of CODES) {
    const name = refusal(code).message.split(" ")[4];
    const undone = isUncertain(code) ? "is unstaged: it may be staged" : "is not unstaged: it is not staged";
    test(`NodeStageVolume ${name}: a pod that goes then ${undone}`, async () => {
      const scene = await registered();
      scene.csi.faults.push({ method: "stage", error: refusal(code) });
      await scene.refusal(scene.user("a"));
      assert.equal(
        scene.machine.files.size,
        isUncertain(code) ? 2 : 1,
        "metadata of the stage is kept while it counts",
      );
      await scene.teardown("a");
      assert.deepEqual(scene.csi.methods, isUncertain(code) ? ["stage", "unstage"] : ["stage"]);
      assert.deepEqual(scene.leftovers(), []);
    });

    const unpublished = isUncertain(code) ? "is unpublished" : "is not unpublished";
    test(`NodePublishVolume ${name}: a pod that goes then ${unpublished}, and its stage is unstaged`, async () => {
      const scene = await registered();
      scene.csi.faults.push({ method: "publish", error: refusal(code) });
      await scene.refusal(scene.user("a"));
      await scene.teardown("a");
      const calls = ["stage", "publish", ...(isUncertain(code) ? ["unpublish"] : []), "unstage"];
      assert.deepEqual(scene.csi.methods, calls);
      assert.deepEqual(scene.leftovers(), []);
    });

    test(`${name} once for each call: the pod starts, goes, and leaves nothing`, async () => {
      const scene = await registered();
      for (const method of ["stage", "publish", "unpublish", "unstage"] as const) {
        scene.csi.faults.push({ method, error: refusal(code) });
      }
      const prepared = scene.prepare(scene.user("a"));
      await scene.clock.advance(10_000);
      await prepared;
      await assert.rejects(scene.teardown("a"), /out of order/);
      await scene.teardown("a");
      await scene.clock.advance(10_000);
      assert.deepEqual(scene.leftovers(), []);
      assert.equal(scene.clock.waiting, 0);
    });
  }

  test("an answer that is lost is asked for again with the same arguments", async () => {
    const scene = await registered();
    for (const method of ["stage", "publish"] as const) {
      scene.csi.faults.push({ method, error: refusal(4), afterWork: true });
    }
    const prepared = scene.prepare(scene.user("a"));
    await scene.clock.advance(10_000);
    await prepared;
    assert.deepEqual(scene.csi.methods, ["stage", "stage", "publish", "publish"]);
    for (const method of ["stage", "publish"] as const) {
      const [first, second] = scene.csi.asked(method);
      assert.deepEqual(second, first);
    }
  });

  test("an uncertain failure and then a final one: what is not staged is not unstaged", async () => {
    const scene = await registered();
    scene.csi.faults.push({ method: "stage", error: refusal(4) }, { method: "stage", error: refusal(13) });
    scene.csi.faults.push({ method: "stage", error: refusal(13) });
    const stop = new AbortController();
    const prepared = scene.volumes.prepare(scene.user("a"), { signal: stop.signal });
    prepared.catch(() => undefined);
    await scene.clock.advance(600);
    stop.abort(new Error("deleted"));
    await prepared.catch(() => undefined);
    await scene.teardown("a");
    assert.deepEqual(scene.csi.methods, ["stage", "stage"]);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("a final failure of what an earlier agent staged: it is unstaged", async () => {
    const scene = await registered();
    await scene.prepare(scene.user("a"));
    await scene.restart();
    scene.csi.calls.length = 0;
    scene.csi.faults.push({ method: "stage", error: refusal(13) });
    await scene.refusal(scene.user("a"));
    await scene.teardown("a");
    assert.deepEqual(scene.csi.methods, ["stage", "unpublish", "unstage"]);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("a driver that mounted before it failed for certain: that is undone with the pod", async () => {
    const scene = await registered();
    scene.csi.faults.push({ method: "stage", error: refusal(13), afterWork: true });
    await scene.refusal(scene.user("a"));
    await scene.teardown("a");
    assert.deepEqual(scene.csi.methods, ["stage", "unstage"]);
    assert.deepEqual(scene.leftovers(), []);
  });
});

describe("a driver that is killed, hangs or forgets", () => {
  test("is waited for between stage and publish, and not asked to stage again", async () => {
    const scene = await registered();
    scene.csi.onCall = (method) => {
      if (method === "stage") scene.deregister();
    };
    const prepared = scene.prepare(scene.user("a"));
    await scene.clock.advance(2000);
    assert.match(scene.events.at(-1) ?? "", /MountVolume\.SetUp failed for volume "pv-1" : .*mounter\.SetUpAt failed/);
    scene.csi.onCall = () => undefined;
    await scene.register();
    await scene.clock.advance(5000);
    await prepared;
    assert.deepEqual(scene.csi.methods, ["stage", "publish"]);
  });

  test("whose stages are gone is asked to stage again before the next publish", async () => {
    const scene = await registered();
    await scene.prepare(scene.user("a"));
    scene.csi.calls.length = 0;
    scene.csi.faults.push({ method: "publish", error: refusal(9) });
    const prepared = scene.prepare(scene.user("b"));
    await scene.clock.advance(1000);
    await prepared;
    assert.deepEqual(scene.csi.methods, ["publish", "stage", "publish"]);
  });

  test("whose stages of block volumes are gone is asked to stage again before the next publish", async () => {
    const scene = await registered({ volume: { volumeMode: "Block" } });
    await scene.prepare(scene.user("a"));
    scene.csi.calls.length = 0;
    scene.csi.faults.push({ method: "publish", error: refusal(9) });
    const prepared = scene.prepare(scene.user("b"));
    await scene.clock.advance(1000);
    await prepared;
    assert.deepEqual(scene.csi.methods, ["publish", "stage", "publish"]);
  });

  test("is not asked to stage again for a second pod", async () => {
    const scene = await registered();
    await scene.prepare(scene.user("a"));
    await scene.prepare(scene.user("b"));
    assert.deepEqual(scene.csi.methods, ["stage", "publish", "publish"]);
  });

  test("is asked one thing at a time of a volume, also if the pod goes while it hangs", async () => {
    const scene = await registered();
    let answer = (): void => undefined;
    const hangs = new Promise<void>((resolve) => (answer = resolve));
    scene.csi.onCall = (method) => (method === "publish" ? hangs : undefined);
    const stop = new AbortController();
    const prepared = scene.volumes.prepare(scene.user("a"), { signal: stop.signal });
    prepared.catch(() => undefined);
    await scene.clock.advance(0);
    stop.abort(new Error("deleted"));
    await assert.rejects(prepared, /deleted/);
    const gone = scene.teardown("a");
    await scene.clock.advance(1000);
    assert.deepEqual(scene.csi.methods, ["stage", "publish"]);
    answer();
    await gone;
    assert.deepEqual(scene.csi.methods, ["stage", "publish", "unpublish", "unstage"]);
    assert.equal(scene.csi.mostInFlight, 1);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("a volume that cannot be torn down does not keep the pod's others", async () => {
    const scene = await registered({ driver: { volumeLifecycleModes: ["Ephemeral"] } });
    const web = scene.user("web", { csi: { driver: CSI_DRIVER } });
    const volumes = ["a", "b", "c"].map((name) => ({ name, csi: { driver: CSI_DRIVER } }));
    await scene.prepare({ ...web, spec: { ...web.spec, volumes } });
    scene.csi.faults.push({ method: "unpublish", error: refusal(13) });
    await assert.rejects(scene.teardown("web"), /out of order/);
    assert.equal(scene.csi.asked("unpublish").length, 3);
    await scene.teardown("web");
    assert.equal(scene.csi.asked("unpublish").length, 4);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("one volume that hangs does not keep another waiting", async () => {
    const scene = await registered({ driver: { volumeLifecycleModes: ["Ephemeral", "Persistent"] } });
    scene.csi.onCall = (method) => (method === "stage" ? new Promise<void>(() => undefined) : undefined);
    void scene.prepare(scene.user("a")).catch(() => undefined);
    await scene.clock.advance(0);
    await scene.prepare(scene.user("b", { csi: { driver: CSI_DRIVER } }));
    assert.deepEqual(scene.csi.methods, ["stage", "publish"]);
  });
});

describe("a reboot", () => {
  test("leaves directories and files without mounts: the pod gets its volume again, and all goes with it", async () => {
    const scene = await registered();
    await scene.prepare(scene.user("a"));
    scene.machine.mounts.clear();
    await scene.restart();
    scene.csi.calls.length = 0;
    const web = scene.user("a");
    scene.volumes.wanted([web]);
    await scene.clock.advance(0);
    await scene.prepare(web);
    assert.deepEqual(scene.csi.methods, ["stage", "publish"]);
    await scene.teardown("a");
    assert.deepEqual(scene.leftovers(), []);
  });

  test("of a pod that is gone by then: what is left is undone at the driver and on disk", async () => {
    const scene = await registered();
    await scene.prepare(scene.user("a"));
    scene.machine.mounts.clear();
    await scene.restart();
    scene.csi.calls.length = 0;
    assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), []);
    assert.deepEqual(scene.csi.methods, ["unpublish", "unstage"]);
    assert.deepEqual(scene.leftovers(), []);
  });
});

test("a stage that somebody has mounted elsewhere is not unstaged until that is gone", async () => {
  const scene = await registered();
  await scene.prepare(scene.user("a"));
  scene.machine.mounts.set("/srv/copy", { type: "bind", source: `${STAGE}/${DISK_1}/globalmount` });
  await scene.teardown("a");
  assert.deepEqual(scene.csi.methods, ["stage", "publish", "unpublish"]);
  scene.machine.mounts.delete("/srv/copy");
  await scene.clock.advance(1000);
  assert.equal(scene.csi.methods.at(-1), "unstage");
  assert.deepEqual(scene.leftovers(), []);
});

test("a stage that is mounted under another name of the agent's directory is unstaged", async () => {
  const scene = await registered();
  await scene.prepare(scene.user("a"));
  const stage = `${STAGE}/${DISK_1}/globalmount`;
  scene.machine.mounts.set(`/srv${stage}`, { type: "bind", source: stage });
  await scene.teardown("a");
  assert.equal(scene.csi.methods.at(-1), "unstage");
});

for (const podInfoOnMount of [true, false]) {
  test(`a driver is ${podInfoOnMount ? "" : "not "}told about the pod if its object has podInfoOnMount ${podInfoOnMount}`, async () => {
    const scene = await registered({ driver: { podInfoOnMount } });
    await scene.prepare(scene.user("a"));
    const { context } = scene.csi.asked("publish")[0] ?? {};
    assert.equal("csi.storage.k8s.io/pod.uid" in Object(context), podInfoOnMount);
  });
}

test("a driver that does not stage is not asked to unstage", async () => {
  const scene = await registered();
  scene.csi.capabilities = { ...scene.csi.capabilities, stages: false };
  await scene.prepare(scene.user("a"));
  await scene.teardown("a");
  assert.deepEqual([scene.csi.methods, scene.leftovers()], [["publish", "unpublish"], []]);
});

test("a volume whose secret is missing is not staged, and the reason names the secret", async () => {
  const nodeStageSecretRef = { namespace: "storage", name: "keys" };
  const csi = { driver: CSI_DRIVER, volumeHandle: "disk-1", nodeStageSecretRef };
  const scene = await registered({ volume: { csi } });
  assert.match(
    await scene.refusal(scene.user("a")),
    /fetching NodeStageSecretRef storage\/keys failed: .*"keys" not found/,
  );
  assert.deepEqual(scene.csi.methods, []);
});

for (const { name, mode, path } of [
  {
    name: "volume",
    mode: "Filesystem",
    path: "/root/pods/uid-of-a/volumes/kubernetes.io~csi/pv-1/mount",
  },
  {
    name: "block volume",
    mode: "Block",
    path: "/root/plugins/kubernetes.io/csi/volumeDevices/pv-1/dev/uid-of-a",
  },
]) {
  for (const isThere of [true, false]) {
    test(`a ${name} of an earlier agent ${isThere ? "is found" : "that is not mounted is not found"} by the next one`, async () => {
      const scene = await registered({ volume: { volumeMode: mode } });
      const user = scene.user("a");
      await scene.prepare(user);
      await scene.restart();
      assert.ok(scene.machine.mounts.has(path));
      if (!isThere) {
        scene.machine.mounts.delete(path);
        scene.machine.kinds.set(path, mode === "Block" ? "file" : "directory");
      }
      scene.volumes.wanted([user]);
      await scene.clock.advance(0);
      const source = () => scene.volumes.source(user, "v");
      if (isThere) assert.equal(source().kind, mode === "Block" ? "device" : "path");
      else assert.throws(source, /volume "v" is not ready/);
    });
  }
}

describe("a volume with ReadWriteOncePod", () => {
  test("is refused to a second pod until the first is gone", async () => {
    const scene = await registered({ volume: { accessModes: ["ReadWriteOncePod"] } });
    await scene.prepare(scene.user("a"));
    const second = scene.prepare(scene.user("b"));
    await scene.clock.advance(0);
    const words = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
    assert.equal(scene.events.at(-1), `FailedMount: MountVolume.SetUp failed for volume "pv-1" : ${words}`);
    assert.deepEqual(scene.csi.methods, ["stage", "publish"]);
    await scene.teardown("a");
    await scene.clock.advance(5000);
    await second;
  });

  test("is refused also after a restart of the agent, by what is on disk", async () => {
    const scene = await registered({ volume: { accessModes: ["ReadWriteOncePod"] } });
    await scene.prepare(scene.user("a"));
    await scene.restart();
    assert.match(await scene.refusal(scene.user("b")), /already in use by another pod/);
    await scene.prepare(scene.user("a"));
  });
});

test("a volume that a pod names itself has no stage, on disk or at the driver", async () => {
  const scene = await registered({ driver: { volumeLifecycleModes: ["Ephemeral"] } });
  await scene.prepare(scene.user("a", { csi: { driver: CSI_DRIVER } }));
  assert.deepEqual(scene.csi.methods, ["publish"]);
  assert.deepEqual(await scene.machine.list("/root/plugins"), []);
  await scene.teardown("a");
  assert.deepEqual(scene.csi.methods, ["publish", "unpublish"]);
  assert.deepEqual(scene.leftovers(), []);
});

describe("what the original kubelet left", () => {
  /** As it lies on disk, with the files as it writes them. */
  async function inherited(): Promise<CsiScene> {
    const scene = await registered();
    const { machine } = scene;
    const volume = "/root/pods/uid-of-a/volumes/kubernetes.io~csi/pv-1";
    await machine.replaceFile(
      `${volume}/vol_data.json`,
      `{"attachmentID":"csi-1","driverName":"${CSI_DRIVER}","nodeName":"node-1","specVolID":"pv-1","volumeHandle":"disk-1","volumeLifecycleMode":"Persistent"}\n`,
    );
    await machine.makeDir(`${volume}/mount`, 0o750);
    machine.mounts.set(`${volume}/mount`, { type: "csi" });
    const staged = `${STAGE}/${DISK_1}`;
    await machine.replaceFile(`${staged}/vol_data.json`, `{"driverName":"${CSI_DRIVER}","volumeHandle":"disk-1"}\n`);
    await machine.makeDir(`${staged}/globalmount`, 0o750);
    machine.mounts.set(`${staged}/globalmount`, { type: "csi" });
    return scene;
  }

  test("is torn down with its stage, without the API server", async () => {
    const scene = await inherited();
    scene.objects.fault = new Error("connection refused");
    assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), []);
    assert.deepEqual(scene.csi.methods, ["unpublish", "unstage"]);
    assert.deepEqual(scene.leftovers(), []);
  });

  test("is taken over by the pod that it belongs to", async () => {
    const scene = await inherited();
    await scene.prepare(scene.user("a"));
    assert.deepEqual(scene.csi.methods, ["stage", "publish"]);
    await scene.teardown("a");
    assert.deepEqual(scene.leftovers(), []);
  });
});

describe("the agent killed between every two steps", () => {
  for (const [name, work] of [
    ["of a pod's start", async (scene: CsiScene) => void (await scene.refusal(scene.user("a")))],
    [
      "of a pod's end",
      async (scene: CsiScene) => {
        await scene.prepare(scene.user("a"));
        await scene.teardown("a").catch(() => undefined);
      },
    ],
  ] as const) {
    test(`${name}: the next agent leaves nothing, and mounts at one place`, async () => {
      let rounds = 0;
      for (; ; rounds++) {
        const machine = new DoomedMachine();
        const scene = await registered({ machine, volume: { accessModes: ["ReadWriteOncePod"] } });
        if (name === "of a pod's end") await scene.prepare(scene.user("a"));
        machine.callsLeft = rounds;
        await work(scene).catch(() => undefined);
        const isWhole = machine.callsLeft >= 0;
        machine.callsLeft = Number.POSITIVE_INFINITY;
        await scene.restart();
        if (rounds % 2 === 0) await scene.prepare(scene.user("a"));
        await scene.volumes.removeOrphans((uid) => rounds % 2 === 0 && uid === "uid-of-a", scene.never);
        const targets = [...machine.mounts.keys()].filter((path) => path.endsWith("/mount"));
        assert.ok(targets.length <= 1, `killed after ${rounds} calls`);
        scene.objects.fault = new Error("connection refused");
        await scene.teardown("a");
        assert.deepEqual(scene.leftovers(), [], `killed after ${rounds} calls`);
        if (isWhole) break;
        assert.ok(rounds < 100, "it ends");
      }
      assert.ok(rounds >= 5, `${rounds}`);
    });
  }
});
