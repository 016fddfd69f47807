import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { configMap, secret } from "../../test/support/objects.ts";
import { pod } from "../../test/support/pods.ts";
import { POD_DIR, VolumeScene } from "../../test/support/volumes.ts";
import type { Pod, Volume } from "../model/generated/types.ts";

const disk: Volume = { name: "disk", emptyDir: {} };
const memory: Volume = { name: "fast", emptyDir: { medium: "Memory" } };
const config: Volume = { name: "config", configMap: { name: "settings" } };
const [settings] = configMap("settings", {});

function withFields(of: Pod, fields: { annotations?: Record<string, string>; fsGroup?: number; policy?: string }): Pod {
  const { annotations, fsGroup, policy } = fields;
  return {
    ...of,
    metadata: { ...of.metadata, ...(annotations && { annotations }) },
    spec: {
      ...of.spec,
      securityContext: {
        ...(fsGroup === undefined ? {} : { fsGroup }),
        ...(policy && { fsGroupChangePolicy: policy }),
      },
    },
  };
}

describe("preparing", () => {
  test("a pod without volumes has no directory made for it", async () => {
    const scene = new VolumeScene();
    await scene.prepare();
    assert.deepEqual(scene.machine.done, []);
  });

  test("an unknown kind is an error of that volume", async () => {
    const scene = new VolumeScene([{ name: "odd", rbd: { image: "i", monitors: [] } }]);
    await assert.rejects(scene.prepare(), /volume "odd" is of a kind that is not supported/);
  });

  /** A pod with a tmpfs that is being mounted until `release`, and whose wait was aborted. */
  const aborted = async () => {
    const scene = new VolumeScene([config, memory]);
    let release = (): void => undefined;
    scene.machine.beforeMount = new Promise((resolve) => {
      release = resolve;
    });
    const abort = new AbortController();
    const prepared = scene.volumes.prepare(scene.web, { signal: abort.signal }).catch((error: unknown) => error);
    await scene.clock.advance(0);
    abort.abort(new Error("stop"));
    assert.match(String(await prepared), /stop/);
    return { scene, release: () => release() };
  };

  test("an abort ends the wait at once, and whoever asks next waits for the attempt that is under way", async () => {
    const { scene, release } = await aborted();
    scene.objects.put(...configMap("settings", {}));
    const again = scene.prepare();
    await scene.clock.advance(0);
    release();
    await again;
    assert.equal(scene.machine.mounts.size, 1, "mounted once");
  });

  test("tearing down waits for an attempt that is under way, and undoes it", async () => {
    const { scene, release } = await aborted();
    let isDown = false;
    const down = scene.volumes.teardown("uid-of-web", scene.never).then(() => {
      isDown = true;
    });
    await scene.clock.advance(0);
    assert.equal(isDown, false);
    release();
    await down;
    assert.equal(scene.machine.mounts.size, 0);
  });

  test("an attempt that takes long is shown after 10 s, is an event after 30 s, and named when the wait is over", async () => {
    const scene = new VolumeScene([{ name: "far", nfs: { server: "s", path: "/" } }]);
    scene.machine.mountByCommand = () => new Promise(() => undefined);
    const prepared = scene.prepare().catch((error: unknown) => String(error));
    const shown = (): string | undefined => scene.next?.why;
    await scene.clock.advance(9999);
    assert.equal(shown(), undefined);
    await scene.clock.advance(1);
    const why = "a server, a disk or a driver may not answer";
    assert.equal(shown(), `far since 00:00:00Z: being set up for 10 s: ${why}`);
    await scene.clock.advance(19_999);
    assert.deepEqual(scene.events, []);
    await scene.clock.advance(1);
    const slow = `FailedMount: MountVolume.SetUp for volume "far" has not ended after 30 s: ${why}`;
    assert.deepEqual(scene.events, [slow]);
    await scene.clock.advance(93_000);
    assert.match(
      String(await prepared),
      /unmounted volumes=\[far\], .*: context deadline exceeded \(far: being set up for 123 s/,
    );
  });

  test("the delay grows over several waits of the pod, until an attempt succeeds", async () => {
    const scene = new VolumeScene([{ name: "far", nfs: { server: "s", path: "/" } }]);
    scene.machine.commandFaults.set("mount", new Error("refused"));
    const waits: number[] = [];
    for (let round = 0; round < 11; round++) {
      await scene.refusal();
      waits.push((scene.next?.at ?? 0) - scene.clock.now().wall);
    }
    assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 122_000, 122_000, 122_000]);
    scene.machine.commandFaults.clear();
    await scene.prepare();
    scene.machine.mounts.clear();
    scene.machine.commandFaults.set("mount", new Error("refused"));
    await scene.refusal();
    assert.equal((scene.next?.at ?? 0) - scene.clock.now().wall, 500);
  });

  test("a volume that waits keeps no other from being made, in this pod or another", async () => {
    const scene = new VolumeScene([config, disk]);
    const waiting = scene.prepare();
    await scene.clock.advance(0);
    assert.ok(scene.machine.modes.has(scene.directory("empty-dir", "disk")));
    await scene.prepare(
      pod("other")
        .container("app")
        .with({ volumes: [disk] })
        .build(),
    );
    scene.objects.put(...configMap("settings", { a: "1" }));
    await waiting;
  });

  test("reports which volumes are waited for, since when and why, and when they are retried", async () => {
    const scene = new VolumeScene([config, { name: "login", secret: { secretName: "login" } }]);
    const details: string[] = [];
    const prepared = scene.volumes.prepare(scene.web, {
      ...scene.never,
      onWait: (detail) => void details.push(detail),
    });
    await scene.clock.advance(0);
    const want =
      'config since 00:00:00Z: configmap "settings" not found; login since 00:00:00Z: secret "login" not found';
    assert.equal(details.at(-1), want);
    assert.deepEqual(scene.next, { at: scene.clock.now().wall + 500, why: want });
    assert.deepEqual(scene.events, [
      'FailedMount: MountVolume.SetUp failed for volume "config" : configmap "settings" not found',
      'FailedMount: MountVolume.SetUp failed for volume "login" : secret "login" not found',
    ]);
    scene.objects.put(...configMap("settings", {}));
    await scene.clock.advance(0);
    assert.equal(details.at(-1), 'login since 00:00:00Z: secret "login" not found');
    scene.objects.put(...secret("login", {}));
    await prepared;
    assert.equal(scene.next, undefined);
  });

  test("tries again by a growing delay, and at once when the object appears", async () => {
    const scene = new VolumeScene([config]);
    const prepared = scene.prepare();
    await scene.clock.advance(0);
    const after = async (ms: number): Promise<number> => {
      await scene.clock.advance(ms);
      return scene.objects.reads;
    };
    assert.deepEqual([await after(499), await after(1), await after(999), await after(1)], [1, 2, 2, 3]);
    scene.objects.put(...configMap("settings", { a: "1" }));
    await prepared;
    assert.deepEqual(scene.machine.texts(scene.directory("configmap", "config")), { a: "1" });
  });

  test("gives up after 2 minutes and 3 seconds with the words of Kubernetes", async () => {
    const scene = new VolumeScene([config, disk]);
    const prepared = scene.prepare().catch((error: unknown) => String(error));
    await scene.clock.advance(122_999);
    await scene.clock.advance(1);
    assert.match(
      String(await prepared),
      /unmounted volumes=\[config\], unattached volumes=\[\], .*: context deadline exceeded/,
    );
  });

  test("an object that cannot be read for now is waited for like one that is missing", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "1" }));
    scene.objects.fault = new Error("failed to sync configmap cache: timed out waiting for the condition");
    const prepared = scene.prepare();
    await scene.clock.advance(0);
    assert.match(scene.next?.why ?? "", /failed to sync/);
    scene.objects.fault = undefined;
    await scene.clock.advance(500);
    await prepared;
  });

  test("a mount of a volume that the pod does not have says which", async () => {
    const scene = new VolumeScene([disk]);
    await scene.prepare();
    assert.throws(() => scene.volumes.source(scene.web, "other"), /volume "other" not found in the pod/);
  });
});

describe("a volume with content", () => {
  test("follows its object, as often as it changes, and leaves the old content when it cannot", async () => {
    const scene = new VolumeScene([config]);
    const directory = scene.directory("configmap", "config");
    scene.objects.put(...configMap("settings", { a: "1" }));
    await scene.prepare();
    scene.objects.put(...configMap("settings", { a: "2", b: "2" }));
    await scene.clock.advance(0);
    assert.deepEqual(scene.machine.texts(directory), { a: "2", b: "2" });
    scene.machine.writeFault = new Error("no space left on device");
    scene.objects.put(...configMap("settings", { a: "3" }));
    await scene.clock.advance(0);
    assert.deepEqual(scene.machine.texts(directory), { a: "2", b: "2" });
    assert.match(scene.events.at(-1) ?? "", /no space left/);
    await scene.clock.advance(500);
    assert.deepEqual(scene.machine.texts(directory), { a: "3" });
    assert.equal(scene.clock.waiting, 0, "nothing is polled");
  });

  test("keeps its content when the object is removed, and a container may start again with it", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "1" }));
    await scene.prepare();
    scene.objects.remove(settings);
    await scene.clock.advance(0);
    await scene.prepare();
    assert.deepEqual(scene.machine.texts(scene.directory("configmap", "config")), { a: "1" });
  });

  test("a change while the one before is written is not lost", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "0" }));
    await scene.prepare();
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const write = scene.machine.writeFiles.bind(scene.machine);
    scene.machine.writeFiles = async (...request) => {
      await held;
      return write(...request);
    };
    scene.objects.put(...configMap("settings", { a: "1" }));
    await scene.clock.advance(0);
    scene.objects.put(...configMap("settings", { a: "2" }));
    await scene.clock.advance(0);
    release();
    await scene.clock.advance(0);
    assert.deepEqual(scene.machine.texts(scene.directory("configmap", "config")), { a: "2" });
  });

  test("many changes while one is written are one more write", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "0" }));
    await scene.prepare();
    scene.machine.done.length = 0;
    for (let i = 1; i <= 20; i++) scene.objects.put(...configMap("settings", { a: String(i) }));
    await scene.clock.advance(0);
    const writes = scene.machine.done.filter((line) => line.startsWith("write"));
    assert.ok(writes.length <= 2, `${writes.length} writes`);
    assert.deepEqual(scene.machine.texts(scene.directory("configmap", "config")), { a: "20" });
  });

  const note = { items: [{ path: "note", fieldRef: { fieldPath: "metadata.annotations['note']" } }] };
  const fields: readonly { plugin: string; volume: Volume }[] = [
    { plugin: "downward-api", volume: { name: "self", downwardAPI: note } },
    { plugin: "projected", volume: { name: "self", projected: { sources: [{ downwardAPI: note }] } } },
  ];
  for (const { plugin, volume } of fields)
    test(`of the pod itself follows its annotations, and nothing else of it (${plugin})`, async () => {
      const scene = new VolumeScene([volume]);
      const one = withFields(scene.web, { annotations: { note: "one" } });
      await scene.prepare(one);
      // The first time a pod is wanted its volumes are brought up to date in any case.
      scene.volumes.wanted([one]);
      await scene.clock.advance(0);
      scene.volumes.wanted([withFields(scene.web, { annotations: { note: "two" } })]);
      await scene.clock.advance(0);
      assert.deepEqual(scene.machine.texts(scene.directory(plugin, "self")), { note: "two" });
      scene.machine.done.length = 0;
      scene.volumes.wanted([withFields(scene.web, { annotations: { note: "two" }, fsGroup: 7 })]);
      await scene.clock.advance(0);
      assert.deepEqual(scene.machine.done, []);
    });

  test("that an earlier agent made is followed without a container being touched", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "1" }));
    await scene.prepare();
    scene.objects.put(...configMap("settings", { a: "while nobody looked" }));
    scene.volumes = scene.newAgent();
    scene.volumes.wanted([scene.web]);
    await scene.clock.advance(0);
    const directory = scene.directory("configmap", "config");
    assert.deepEqual(scene.machine.texts(directory), { a: "while nobody looked" });
    scene.objects.put(...configMap("settings", { a: "later" }));
    await scene.clock.advance(0);
    assert.deepEqual(scene.machine.texts(directory), { a: "later" });
  });

  test("that an earlier agent made is followed, too, if it could not be listed at first", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "1" }));
    await scene.prepare();
    scene.volumes = scene.newAgent();
    scene.machine.readFaults.set("/root/pods/uid-of-web/volumes", new Error("input/output error"));
    scene.volumes.wanted([scene.web]);
    await scene.clock.advance(600);
    assert.equal(scene.objects.listening(settings), 1, "only the agent before");
    scene.machine.readFaults.clear();
    await scene.clock.advance(1000);
    assert.equal(scene.objects.listening(settings), 2);
    assert.equal(scene.clock.waiting, 0);
  });

  test("that could not be listed is not tried again once its pod is torn down or not wanted any more", async () => {
    for (const end of ["torn down", "not wanted"]) {
      const scene = new VolumeScene([config]);
      scene.objects.put(...configMap("settings", { a: "1" }));
      await scene.prepare();
      scene.volumes = scene.newAgent();
      scene.machine.readFaults.set("/root/pods/uid-of-web/volumes", new Error("input/output error"));
      scene.volumes.wanted([scene.web]);
      await scene.clock.advance(0);
      scene.machine.readFaults.clear();
      if (end === "torn down") await scene.volumes.teardown("uid-of-web", scene.never);
      else scene.volumes.wanted([]);
      await scene.clock.advance(1000);
      assert.equal(scene.objects.listening(settings), 1, `${end}: only the agent before`);
      assert.equal(scene.clock.waiting, 0);
    }
  });

  test("that an earlier agent made is not followed if it is torn down while it is listed", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "1" }));
    await scene.prepare();
    scene.volumes = scene.newAgent();
    scene.volumes.wanted([scene.web]);
    await scene.volumes.teardown("uid-of-web", scene.never);
    await scene.clock.advance(0);
    assert.equal(scene.objects.listening(settings), 1, "only the agent before");
    assert.equal(scene.machine.modes.has(scene.directory("configmap", "config")), false);
  });

  test("of a pod that never started is not made for it only because it is wanted", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "1" }));
    scene.volumes.wanted([scene.web]);
    await scene.clock.advance(0);
    assert.deepEqual(scene.machine.done, []);
    assert.equal(scene.objects.listening(settings), 0);
  });

  test("that was torn down is not set up again by a change, and no listener is left", async () => {
    const scene = new VolumeScene([config]);
    scene.objects.put(...configMap("settings", { a: "1" }));
    await scene.prepare();
    assert.equal(scene.objects.listening(settings), 1);
    scene.objects.put(...configMap("settings", { a: "2" }));
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.equal(scene.objects.listening(settings), 0);
    scene.objects.put(...configMap("settings", { a: "3" }));
    scene.volumes.wanted([scene.web]);
    await scene.clock.advance(200_000);
    assert.equal(scene.machine.contents.size, 0);
    assert.equal(scene.machine.modes.has(scene.directory("configmap", "config")), false);
  });
});

describe("fsGroup", () => {
  const cases: [string, { fsGroup?: number; policy?: string }, unknown][] = [
    ["none leaves the volume as it is", {}, undefined],
    ["is given to the whole tree", { fsGroup: 7 }, { gid: 7, onlyOnMismatch: false }],
    ["Always walks", { fsGroup: 7, policy: "Always" }, { gid: 7, onlyOnMismatch: false }],
    ["OnRootMismatch looks first", { fsGroup: 0, policy: "OnRootMismatch" }, { gid: 0, onlyOnMismatch: true }],
  ];
  for (const [name, fields, want] of cases) {
    test(name, async () => {
      const scene = new VolumeScene([disk]);
      await scene.prepare(withFields(scene.web, fields));
      assert.deepEqual(scene.machine.groups.get(scene.directory("empty-dir", "disk")), want);
    });
  }

  test("is given once in an agent's life, not at every restart of a container", async () => {
    const scene = new VolumeScene([disk]);
    const web = withFields(scene.web, { fsGroup: 7 });
    await scene.prepare(web);
    await scene.prepare(web);
    assert.equal(scene.machine.done.filter((line) => line.startsWith("group")).length, 1);
  });

  test("a walk that takes long is reported after 30 s and then every minute", async () => {
    const scene = new VolumeScene([disk]);
    scene.machine.changeGroup = async (_path, { onProgress }) => {
      for (let second = 1; second <= 100; second++) {
        await scene.clock.advance(1000);
        onProgress(second * 1000);
      }
    };
    await scene.prepare(withFields(scene.web, { fsGroup: 7 }));
    const told = scene.events.map((event) => /^VolumePermissionChangeInProgress: .* (\d+) files/.exec(event)?.[1]);
    assert.deepEqual(told, ["30000", "90000"]);
  });
});

describe("a subPath", () => {
  const mount = { volume: "disk", container: "app", index: 2, subPath: "a/b" };

  test("is mounted at a directory of its own, and unmounted before its volume goes", async () => {
    const scene = new VolumeScene([disk]);
    await scene.prepare();
    const target = await scene.volumes.subPath(scene.web, mount, scene.never);
    assert.equal(target, `${POD_DIR}/volume-subpaths/disk/app/2`);
    assert.equal(scene.machine.mounts.get(target)?.source, `${scene.directory("empty-dir", "disk")}/a/b`);
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.equal(scene.machine.mounts.size, 0);
    const [unmounted, removed] = [`unmount ${target}`, `remove ${scene.directory("empty-dir", "disk")}`].map((line) =>
      scene.machine.done.indexOf(line),
    );
    assert.ok(unmounted !== undefined && removed !== undefined && unmounted >= 0 && unmounted < removed);
  });

  test("in which a container mounted something is unmounted from the inside out", async () => {
    const scene = new VolumeScene([disk]);
    await scene.prepare();
    const target = await scene.volumes.subPath(scene.web, mount, scene.never);
    scene.machine.mounts.set(`${target}/inner`, { type: "tmpfs" });
    scene.machine.mounts.set(`${target}/inner/most`, { type: "tmpfs" });
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.equal(scene.machine.mounts.size, 0);
  });

  test("of a server's export is unmounted by a command, because the server may be gone", async () => {
    const scene = new VolumeScene([{ name: "disk", nfs: { server: "s", path: "/" } }]);
    await scene.prepare();
    const target = await scene.volumes.subPath(scene.web, mount, scene.never);
    scene.machine.mounts.set(target, { type: "nfs4", source: "s:/a/b" });
    const commands: string[] = [];
    const { unmountByCommand } = scene.machine;
    scene.machine.unmountByCommand = (path, options) => {
      commands.push(path);
      return unmountByCommand.call(scene.machine, path, options);
    };
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.deepEqual(commands, [target, scene.directory("nfs", "disk")]);
  });

  test("of a path that the user chose is checked first with a time limit: it may hang", async () => {
    const scene = new VolumeScene([{ name: "disk", hostPath: { path: "/nfs" } }]);
    await scene.prepare();
    scene.machine.kindOf = (path) => Promise.reject(new Error(`${path} does not answer`));
    await assert.rejects(scene.volumes.subPath(scene.web, mount, scene.never), /\/nfs does not answer/);
    assert.equal(scene.machine.mounts.size, 0);
  });

  test("of an image is not the agent's to mount", async () => {
    const scene = new VolumeScene([{ name: "disk", image: { reference: "x" } }]);
    await scene.prepare();
    await assert.rejects(scene.volumes.subPath(scene.web, mount, scene.never), /subPath requires a volume/);
  });
});

describe("tearing down", () => {
  test("goes by what is there, and the user's own is not touched", async () => {
    const scene = new VolumeScene([disk, memory, { name: "host", hostPath: { path: "/data/x" } }]);
    await scene.prepare();
    scene.machine.modes.set("/data/x", 0o755);
    // Another agent, which does not know the spec.
    await scene.newAgent().teardown("uid-of-web", scene.never);
    assert.equal(scene.machine.mounts.size, 0);
    assert.deepEqual([...scene.machine.modes.keys()], [POD_DIR, "/data/x"]);
  });

  test("may be repeated, and only the volumes of this pod go", async () => {
    const scene = new VolumeScene([disk]);
    const other = pod("other")
      .container("app")
      .with({ volumes: [disk] })
      .build();
    await scene.prepare();
    await scene.prepare(other);
    await scene.volumes.teardown("uid-of-web", scene.never);
    await scene.volumes.teardown("uid-of-web", scene.never);
    assert.equal(scene.machine.modes.has("/root/pods/uid-of-other/volumes/kubernetes.io~empty-dir/disk"), true);
    assert.equal(scene.machine.modes.has(scene.directory("empty-dir", "disk")), false);
  });

  test("an abort ends it between two volumes", async () => {
    const scene = new VolumeScene([disk, memory]);
    await scene.prepare();
    await assert.rejects(scene.volumes.teardown("uid-of-web", { signal: AbortSignal.abort() }));
    assert.equal(scene.machine.modes.has(scene.directory("empty-dir", "disk")), true);
  });

  test("a mount of somebody else inside a volume stops it, and the volume stays", async () => {
    const scene = new VolumeScene([disk]);
    await scene.prepare();
    const foreign = `${scene.directory("empty-dir", "disk")}/bound`;
    scene.machine.mounts.set(foreign, { type: "bind", source: "/data" });
    await assert.rejects(scene.volumes.teardown("uid-of-web", scene.never), /something is mounted/);
    assert.deepEqual([...scene.machine.mounts.keys()], [foreign]);
    scene.machine.mounts.delete(foreign);
    await scene.volumes.teardown("uid-of-web", scene.never);
  });
});

describe("tearing down a pod of which a volume cannot be", () => {
  const far: Volume = { name: "far", nfs: { server: "s", path: "/" } };
  const near: Volume = { name: "near", nfs: { server: "t", path: "/" } };
  /** The server of `far` is gone: nothing helps. */
  const stuck = (): VolumeScene => {
    const scene = new VolumeScene([disk, far, near]);
    const { unmountByCommand } = scene.machine;
    scene.machine.unmountByCommand = (path, options) =>
      path.endsWith("/far")
        ? Promise.reject(new Error("no answer within 10 s"))
        : unmountByCommand.call(scene.machine, path, options);
    return scene;
  };

  test("takes down the others, and says which is left and why", async () => {
    const scene = stuck();
    await scene.prepare();
    const why = 'UnmountVolume.TearDown failed for volume "far" : no answer within 10 s';
    await assert.rejects(scene.volumes.teardown("uid-of-web", scene.never), { message: why });
    assert.deepEqual([...scene.machine.mounts.keys()], [scene.directory("nfs", "far")]);
    assert.equal(scene.machine.modes.has(scene.directory("empty-dir", "disk")), false);
    await assert.rejects(scene.volumes.teardown("uid-of-web", scene.never));
    assert.deepEqual(scene.events, [`FailedUnMount: ${why}`, `FailedUnMount: ${why}`]);
  });

  test("is tried again by a growing delay if the pod is an orphan, and does not keep other orphans", async () => {
    const scene = stuck();
    await scene.prepare();
    await scene.prepare(
      pod("other")
        .container("app")
        .with({ volumes: [disk] })
        .build(),
    );
    const next = scene.newAgent();
    let tried = 0;
    const unmount = scene.machine.unmountByCommand.bind(scene.machine);
    scene.machine.unmountByCommand = (path, options) => {
      tried++;
      return unmount(path, options);
    };
    const sweep = async (afterMs: number): Promise<[readonly string[], number]> => {
      await scene.clock.advance(afterMs);
      tried = 0;
      return [await next.removeOrphans(() => false, scene.never), tried];
    };
    assert.deepEqual(await sweep(0), [["uid-of-web"], 2]);
    assert.equal(scene.machine.modes.has("/root/pods/uid-of-other"), false);
    assert.deepEqual(await sweep(499), [["uid-of-web"], 0]);
    assert.deepEqual(await sweep(1), [["uid-of-web"], 1]);
    assert.deepEqual(await sweep(999), [["uid-of-web"], 0]);
    scene.machine.unmountByCommand = unmount;
    scene.machine.mounts.clear();
    scene.machine.unmountByCommand = async () => undefined;
    assert.deepEqual(await sweep(1), [[], 0]);
  });
});

describe("directories of orphaned pods", () => {
  test("files in the directory of a volume that no kind knows are never removed", async () => {
    const scene = new VolumeScene([disk]);
    await scene.prepare();
    const data = `${POD_DIR}/volumes/vendor~driver/data/precious`;
    await scene.machine.makeDir(`${POD_DIR}/volumes/vendor~driver/data`, 0o750);
    await scene.machine.makeFile(data, 0o600);
    const next = scene.newAgent();
    assert.deepEqual(await next.removeOrphans(() => false, scene.never), ["uid-of-web"]);
    assert.ok(scene.machine.modes.has(data));
    await scene.machine.removeFile(data);
    await scene.clock.advance(500);
    assert.deepEqual(await next.removeOrphans(() => false, scene.never), []);
    assert.equal(scene.machine.modes.has(POD_DIR), false);
  });

  test("go with what they hold; known ones, and those with foreign mounts, stay", async () => {
    const scene = new VolumeScene([memory]);
    for (const name of ["web", "known", "foreign"]) {
      await scene.prepare(
        pod(name)
          .container("app")
          .with({ volumes: [memory, disk] })
          .build(),
      );
    }
    const foreign = "/root/pods/uid-of-foreign/volumes/kubernetes.io~empty-dir/disk/bound";
    scene.machine.mounts.set(foreign, { type: "bind" });
    const next = scene.newAgent();
    const left = await next.removeOrphans((uid) => uid === "uid-of-known", scene.never);
    assert.deepEqual(left, ["uid-of-foreign"]);
    assert.deepEqual(await scene.machine.list("/root/pods"), ["uid-of-known", "uid-of-foreign"]);
    assert.deepEqual(await scene.machine.mountsBelow(POD_DIR), []);
    scene.machine.mounts.delete(foreign);
    await scene.clock.advance(500);
    assert.deepEqual(await next.removeOrphans((uid) => uid === "uid-of-known", scene.never), []);
  });

  test("what else an orphaned pod left is removed before its directory, which stays if that fails", async () => {
    const scene = new VolumeScene([disk]);
    await scene.prepare();
    const next = scene.newAgent();
    const failing = { ...scene.never, rest: () => Promise.reject(new Error("a cgroup that is busy")) };
    assert.deepEqual(await next.removeOrphans(() => false, failing), ["uid-of-web"]);
    assert.ok(scene.machine.modes.has(POD_DIR));
    const asked: string[] = [];
    const rest = async (uid: string): Promise<void> => {
      asked.push(uid);
      assert.ok(scene.machine.modes.has(POD_DIR), "the directory is there until then");
    };
    await scene.clock.advance(500);
    assert.deepEqual(await next.removeOrphans(() => false, { ...scene.never, rest }), []);
    assert.deepEqual([asked, scene.machine.modes.has(POD_DIR)], [["uid-of-web"], false]);
  });

  test("are removed a few at a time, so that many of them keep no other work waiting", async () => {
    const scene = new VolumeScene([disk]);
    const uids = Array.from({ length: 300 }, (_none, index) => `uid-${index}`);
    for (const uid of uids) await scene.machine.makeDir(`/root/pods/${uid}`, 0o750);
    let [now, most] = [0, 0];
    const rest = async (): Promise<void> => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setImmediate(resolve));
      now--;
    };
    assert.deepEqual(await scene.newAgent().removeOrphans(() => false, { ...scene.never, rest }), []);
    assert.equal(most, 8);
    assert.deepEqual(await scene.machine.list("/root/pods"), []);
  });

  test("that hang keep the others for a few seconds only; one that is known by then stays", async () => {
    const scene = new VolumeScene([disk]);
    const hanging = Array.from({ length: 8 }, (_none, index) => `hangs-${index}`);
    for (const uid of [...hanging, "other", "static"]) await scene.machine.makeDir(`/root/pods/${uid}`, 0o750);
    const ends: (() => void)[] = [];
    const rest = (uid: string): Promise<void> =>
      hanging.includes(uid) ? new Promise((resolve) => ends.push(resolve)) : Promise.resolve();
    let isBack = false;
    const isKnown = (uid: string): boolean => isBack && uid === "static";
    const sweeping = scene.newAgent().removeOrphans(isKnown, { ...scene.never, rest });
    await scene.clock.advance(4999);
    assert.deepEqual(await scene.machine.list("/root/pods"), [...hanging, "other", "static"]);
    isBack = true;
    await scene.clock.advance(1);
    assert.deepEqual(await scene.machine.list("/root/pods"), [...hanging, "static"]);
    for (const end of ends) end();
    assert.deepEqual(await sweeping, []);
    assert.deepEqual(await scene.machine.list("/root/pods"), ["static"]);
  });

  test("do not include a pod whose volumes are in use here", async () => {
    const scene = new VolumeScene([disk]);
    await scene.prepare();
    await scene.volumes.removeOrphans(() => false, scene.never);
    assert.ok(scene.machine.modes.has(scene.directory("empty-dir", "disk")));
  });
});

describe("isAtHand", () => {
  const secrets: Volume = { name: "keys", projected: { sources: [{ secret: { name: "keys" } }] } };
  const cases: readonly { name: string; volumes: readonly Volume[]; want: boolean }[] = [
    { name: "directories of the agent's own are", volumes: [disk, memory], want: true },
    { name: "an object that is there is", volumes: [config], want: true },
    { name: "an object that is missing is not", volumes: [config, secrets], want: false },
    { name: "what others have a say in is not", volumes: [{ name: "h", hostPath: { path: "/x" } }], want: false },
    {
      name: "an unknown kind is not",
      volumes: [{ name: "odd", rbd: { image: "i", monitors: [] } }],
      want: false,
    },
  ];
  for (const { name, volumes, want } of cases) {
    test(name, async () => {
      const scene = new VolumeScene(volumes);
      scene.objects.put(...configMap("settings", {}));
      assert.equal(await scene.volumes.isAtHand(scene.web, scene.never), want);
    });
  }

  test("nothing is while the objects cannot be read", async () => {
    const objects = { get: () => Promise.reject(new Error("away")), onChange: () => undefined };
    const scene = new VolumeScene([config], { objects });
    assert.equal(await scene.volumes.isAtHand(scene.web, scene.never), false);
  });
});
