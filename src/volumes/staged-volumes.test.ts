import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { type FakeDriver, stagedKind, stageOf } from "../../test/support/staged-kind.ts";
import { VolumeMachine } from "../../test/support/volume-machine.ts";
import { VolumeScene } from "../../test/support/volumes.ts";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../model/generated/types.ts";
import { VOLUME_KINDS } from "./kinds/index.ts";
import type { VolumeReconciler } from "./reconciler.ts";

const STAGE = `/root/${stageOf("disk-1")}`;
const GLOBAL = `${STAGE}/globalmount`;
const directoryOf = (name: string): string => `/root/pods/uid-of-${name}/volumes/test.example~staged/pv-1`;
const mountOf = (name: string): string => `${directoryOf(name)}/mount`;
const uidOf = (name: string): string => `uid-of-${name}`;

const claimRef = { kind: "PersistentVolumeClaim", namespace: "default", name: "data" } as const;
const volumeRef = { kind: "PersistentVolume", namespace: "", name: "pv-1" } as const;
const claim: PersistentVolumeClaim = {
  metadata: { name: "data", namespace: "default", uid: "claim-1" },
  spec: { volumeName: "pv-1" },
  status: { phase: "Bound" },
};
const volume: PersistentVolume = {
  metadata: { name: "pv-1" },
  spec: { csi: { driver: "fake", volumeHandle: "disk-1" }, claimRef: { uid: "claim-1" } },
};

function user(name: string): Pod {
  const volumes = [{ name: "v", persistentVolumeClaim: { claimName: "data" } }];
  return pod(name).container("app").with({ volumes }).build();
}

class StagedScene extends VolumeScene {
  readonly driver: FakeDriver;

  constructor(host?: VolumeMachine) {
    const driver: FakeDriver = { calls: [], faults: new Map() };
    super([], { kinds: [...VOLUME_KINDS, stagedKind(driver)] }, host);
    this.driver = driver;
    this.objects.put(claimRef, claim);
    this.objects.put(volumeRef, volume);
  }

  /** No API server answers, and what it knew is gone. */
  loseApiServer(): void {
    this.objects.remove(claimRef);
    this.objects.remove(volumeRef);
    this.objects.fault = new Error("connection refused");
  }

  teardown(name: string, volumes: VolumeReconciler = this.volumes): Promise<void> {
    return volumes.teardown(uidOf(name), this.never);
  }

  /** Nothing of any volume is mounted or on disk. */
  assertClean(message = ""): void {
    assert.deepEqual([...this.machine.mounts.keys()], [], message);
    const left = [...this.machine.modes.keys()].filter((path) => path.includes("pv-1") || path.includes("disk-1"));
    assert.deepEqual(left, [], message);
  }
}

describe("a kind that stages", () => {
  test("is staged once for two pods, and unstaged by the last of them only", async () => {
    const scene = new StagedScene();
    await Promise.all([scene.prepare(user("a")), scene.prepare(user("b"))]);
    assert.deepEqual(scene.driver.calls, ["stage disk-1", "publish disk-1", "publish disk-1"]);
    assert.deepEqual([...scene.machine.mounts.keys()].sort(), [GLOBAL, mountOf("a"), mountOf("b")].sort());
    scene.driver.calls.length = 0;
    await scene.teardown("a");
    assert.deepEqual(scene.driver.calls, ["unpublish disk-1"]);
    assert.ok(scene.machine.mounts.has(GLOBAL));
    await scene.teardown("b");
    assert.deepEqual(scene.driver.calls, ["unpublish disk-1", "unpublish disk-1", "unstage disk-1"]);
    scene.assertClean();
  });

  test("is unstaged when all of its pods go at once", async () => {
    const scene = new StagedScene();
    const names = ["a", "b", "c"];
    await Promise.all(names.map((name) => scene.prepare(user(name))));
    await Promise.all(names.map((name) => scene.teardown(name)));
    assert.equal(scene.driver.calls.filter((call) => call === "unstage disk-1").length, 1);
    scene.assertClean();
  });

  test("is staged again for a pod that comes while the last one goes", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("a"));
    await Promise.all([scene.teardown("a"), scene.prepare(user("b"))]);
    assert.deepEqual([...scene.machine.mounts.keys()].sort(), [GLOBAL, mountOf("b")].sort());
    await scene.teardown("b");
    scene.assertClean();
  });

  test("is torn down with pod, claim and API server gone, and reference counts are read from disk", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("a"));
    await scene.prepare(user("b"));
    scene.loseApiServer();
    await scene.teardown("a", scene.newAgent());
    assert.ok(scene.machine.mounts.has(GLOBAL), "the other pod still uses it");
    await scene.teardown("b", scene.newAgent());
    scene.assertClean();
  });

  test("its metadata is beside the mount of the pod and beside the stage", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("a"));
    for (const directory of [directoryOf("a"), STAGE]) {
      const text = scene.machine.files.get(`${directory}/vol_data.json`) ?? "";
      assert.deepEqual(JSON.parse(text), { driverName: "fake", volumeHandle: "disk-1" });
    }
  });

  test("its metadata is written before it is staged, so that whatever the driver did can be undone", async () => {
    const scene = new StagedScene();
    const written: string[] = [];
    scene.driver.onCall = (name) => {
      for (const path of scene.machine.files.keys())
        if (path.endsWith("/vol_data.json")) written.push(`${name} ${path}`);
    };
    scene.driver.faults.set("stage", new Error("device is busy"));
    assert.match(await scene.refusal(user("a")), /device is busy/);
    assert.deepEqual(
      written.sort(),
      [`stage ${STAGE}/vol_data.json`, `stage ${directoryOf("a")}/vol_data.json`].sort(),
    );
  });

  test("an orphaned pod's volume goes, one of a known pod keeps its stage", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("orphan"));
    await scene.prepare(user("known"));
    const next = scene.newAgent();
    assert.deepEqual(await next.removeOrphans((uid) => uid === uidOf("known"), scene.never), []);
    assert.deepEqual([...scene.machine.mounts.keys()].sort(), [GLOBAL, mountOf("known")].sort());
    assert.deepEqual(await scene.newAgent().removeOrphans(() => false, scene.never), []);
    scene.assertClean();
  });

  test("a stage that no pod refers to is unstaged with the orphans", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("a"));
    // Somebody removed the pod's directory by hand.
    scene.machine.mounts.delete(mountOf("a"));
    await scene.machine.removeTree("/root/pods/uid-of-a");
    assert.deepEqual(await scene.newAgent().removeOrphans(() => false, scene.never), []);
    assert.equal(scene.driver.calls.at(-1), "unstage disk-1");
    scene.assertClean();
  });

  test("a failed stage is retried and is undone if the pod goes meanwhile", async () => {
    const scene = new StagedScene();
    scene.driver.faults.set("stage", new Error("device is busy"));
    assert.match(await scene.refusal(user("a")), /device is busy/);
    scene.driver.faults.clear();
    await scene.teardown("a");
    scene.assertClean();
  });

  test("a pod does not wait for a stage that cannot be undone: it is retried with back-off", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("a"));
    scene.driver.faults.set("unstage", new Error("driver does not answer"));
    await scene.teardown("a");
    assert.ok(scene.machine.mounts.has(GLOBAL));
    assert.equal(scene.machine.modes.has(directoryOf("a")), false);
    await scene.clock.advance(500);
    assert.ok(scene.machine.mounts.has(GLOBAL));
    scene.driver.faults.clear();
    await scene.clock.advance(1000);
    scene.assertClean();
    assert.equal(scene.clock.waiting, 0);
  });

  test("a pod that comes back before the retry uses the stage, which then stays", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("a"));
    scene.driver.faults.set("unstage", new Error("driver does not answer"));
    await scene.teardown("a");
    scene.driver.faults.clear();
    await scene.prepare(user("b"));
    await scene.clock.advance(10_000);
    assert.ok(scene.machine.mounts.has(GLOBAL));
    await scene.teardown("b");
    scene.assertClean();
  });

  test("metadata that cannot be read keeps every stage, and its volume can still be removed", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("a"));
    await scene.prepare(user("b"));
    scene.machine.files.set(`${directoryOf("b")}/vol_data.json`, "");
    const next = scene.newAgent();
    await scene.teardown("a", next);
    assert.ok(scene.machine.mounts.has(GLOBAL), "it may be in use");
    await scene.teardown("b", next);
    assert.equal(scene.machine.mounts.has(mountOf("b")), false);
    assert.deepEqual(await next.removeOrphans(() => false, scene.never), []);
    scene.assertClean();
  });

  test("stages that were kept for a volume with damaged metadata are unstaged soon after it is gone", async () => {
    const scene = new StagedScene();
    await scene.prepare(user("a"));
    await scene.prepare(user("b"));
    scene.machine.files.set(`${directoryOf("b")}/vol_data.json`, "");
    const next = scene.newAgent();
    await scene.teardown("a", next);
    await scene.teardown("b", next);
    await scene.clock.advance(1000);
    scene.assertClean();
    assert.equal(scene.clock.waiting, 0);
  });
});

/** A machine on which the process is killed after a number of calls that change something. */
class DoomedMachine extends VolumeMachine {
  callsLeft = Number.POSITIVE_INFINITY;

  constructor() {
    super();
    const writes = "makeDir mountTmpfs bindMount unmount removeDir removeTree removeFile replaceFile".split(" ");
    for (const name of writes) {
      // reason: every listed method takes what it is called with and returns a promise
      const method = Reflect.get(this, name) as (...args: unknown[]) => Promise<unknown>;
      Reflect.set(this, name, async (...args: unknown[]) => {
        if (this.callsLeft-- <= 0) throw new Error("killed");
        return method.apply(this, args);
      });
    }
  }
}

describe("kill -9 after every call", () => {
  /** Kills the agent after each call of `work` in turn and has a new one do `next`. */
  const killed = async (
    before: (scene: StagedScene) => Promise<void>,
    work: (scene: StagedScene) => Promise<void>,
    next: (scene: StagedScene, round: string) => Promise<void>,
  ): Promise<number> => {
    for (let calls = 0; ; calls++) {
      const machine = new DoomedMachine();
      const scene = new StagedScene(machine);
      await before(scene);
      machine.callsLeft = calls;
      await work(scene);
      const isWhole = machine.callsLeft >= 0;
      machine.callsLeft = Number.POSITIVE_INFINITY;
      scene.volumes = scene.newAgent();
      await next(scene, `killed after ${calls} calls`);
      if (isWhole) return calls;
      assert.ok(calls < 100, "it ends");
    }
  };
  const nothing = (): Promise<void> => Promise.resolve();
  const setUp = (scene: StagedScene): Promise<void> => scene.refusal(user("a")).then(() => undefined);
  const tearDown = (scene: StagedScene): Promise<void> => scene.teardown("a").catch(() => undefined);

  test("of setting up: the next agent goes on, and tears down", async () => {
    const rounds = await killed(nothing, setUp, async (scene, round) => {
      await scene.prepare(user("a"));
      assert.deepEqual([...scene.machine.mounts.keys()].sort(), [GLOBAL, mountOf("a")].sort(), round);
      scene.loseApiServer();
      await scene.teardown("a");
      scene.assertClean(round);
    });
    assert.ok(rounds >= 7, `${rounds}`);
  });

  test("of setting up: the next agent finds an orphan", async () => {
    await killed(nothing, setUp, async (scene, round) => {
      scene.loseApiServer();
      assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), [], round);
      scene.assertClean(round);
    });
  });

  test("of tearing down: the next agent goes on", async () => {
    const rounds = await killed(
      (scene) => scene.prepare(user("a")),
      tearDown,
      async (scene, round) => {
        scene.loseApiServer();
        await scene.teardown("a");
        assert.deepEqual(await scene.volumes.removeOrphans(() => false, scene.never), [], round);
        scene.assertClean(round);
      },
    );
    assert.ok(rounds >= 7, `${rounds}`);
  });

  test("of tearing down one of two: the other never loses its stage", async () => {
    await killed(
      async (scene) => {
        await scene.prepare(user("a"));
        await scene.prepare(user("b"));
      },
      tearDown,
      async (scene, round) => {
        scene.loseApiServer();
        await scene.teardown("a");
        assert.deepEqual([...scene.machine.mounts.keys()].sort(), [GLOBAL, mountOf("b")].sort(), round);
        await scene.newAgent().removeOrphans(() => false, scene.never);
        scene.assertClean(round);
      },
    );
  });

  test("of tearing down: a pod that comes first finds a volume that works", async () => {
    await killed(
      (scene) => scene.prepare(user("a")),
      tearDown,
      async (scene, round) => {
        await scene.prepare(user("b"));
        assert.ok(scene.machine.mounts.has(GLOBAL) && scene.machine.mounts.has(mountOf("b")), round);
        await scene.teardown("a");
        assert.ok(scene.machine.mounts.has(GLOBAL) && scene.machine.mounts.has(mountOf("b")), round);
        await scene.teardown("b");
        scene.assertClean(round);
      },
    );
  });
});
