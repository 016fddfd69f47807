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
    const scene = new VolumeScene([{ name: "odd", nfs: { server: "a", path: "/" } }]);
    await assert.rejects(scene.prepare(), /volume "odd" is of a kind that is not supported/);
  });

  test("ends only when every other volume is done, because then they may be torn down", async () => {
    const scene = new VolumeScene([config, memory]);
    let release = (): void => undefined;
    scene.machine.beforeMount = new Promise((resolve) => {
      release = resolve;
    });
    const abort = new AbortController();
    let hasEnded = false;
    const prepared = scene.volumes.prepare(scene.web, { signal: abort.signal }).catch((error: unknown) => {
      hasEnded = true;
      return error;
    });
    await scene.clock.advance(0);
    abort.abort(new Error("stop"));
    await scene.clock.advance(0);
    assert.equal(hasEnded, false);
    release();
    assert.match(String(await prepared), /stop/);
    assert.equal(scene.machine.mounts.size, 1);
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

describe("directories of orphaned pods", () => {
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
    assert.deepEqual(await next.removeOrphans(() => false, { ...scene.never, rest }), []);
    assert.deepEqual([asked, scene.machine.modes.has(POD_DIR)], [["uid-of-web"], false]);
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
      volumes: [{ name: "odd", nfs: { server: "a", path: "/" } }],
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
