import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type DoomedMachine, killedAfterEveryCall } from "../../../test/support/doomed-machine.ts";
import { POD_DIR, VolumeScene } from "../../../test/support/volumes.ts";
import { TimeLimitError } from "../../lib/abort.ts";
import type { NFSVolumeSource, PersistentVolumeSpec, Volume } from "../../model/generated/types.ts";

const INLINE = `${POD_DIR}/volumes/kubernetes.io~nfs/v`;
const PERSISTENT = `${POD_DIR}/volumes/kubernetes.io~nfs/pv-1`;
const ofPod = (nfs: NFSVolumeSource): Volume[] => [{ name: "v", nfs }];
const export1 = { server: "10.0.0.9", path: "/srv/data" };

function claimed(spec: PersistentVolumeSpec, more: { readOnly?: boolean; annotations?: Record<string, string> } = {}) {
  const { readOnly = false, annotations = {} } = more;
  const scene = new VolumeScene([{ name: "v", persistentVolumeClaim: { claimName: "data", readOnly } }]);
  scene.objects.put(
    { kind: "PersistentVolumeClaim", namespace: "default", name: "data" },
    {
      metadata: { name: "data", namespace: "default", uid: "claim-1" },
      spec: { volumeName: "pv-1" },
      status: { phase: "Bound" },
    },
  );
  scene.objects.put(
    { kind: "PersistentVolume", namespace: "", name: "pv-1" },
    { metadata: { name: "pv-1", annotations }, spec: { claimRef: { uid: "claim-1" }, ...spec } },
  );
  return scene;
}

describe("what an NFS volume is mounted with", () => {
  const cases: readonly {
    readonly name: string;
    readonly scene: () => VolumeScene;
    readonly directory?: string;
    readonly source?: string;
    readonly options: readonly string[];
    readonly readonly?: boolean;
  }[] = [
    { name: "a pod's own", scene: () => new VolumeScene(ofPod(export1)), directory: INLINE, options: ["retry=0"] },
    {
      name: "a pod's own, read-only",
      scene: () => new VolumeScene(ofPod({ ...export1, readOnly: true })),
      directory: INLINE,
      options: ["ro", "retry=0"],
      readonly: true,
    },
    {
      name: "an IPv6 server in brackets",
      scene: () => new VolumeScene(ofPod({ server: "fd00::9", path: "/srv" })),
      directory: INLINE,
      source: "[fd00::9]:/srv",
      options: ["retry=0"],
    },
    {
      name: "a claim, with its options sorted and each once",
      scene: () => claimed({ nfs: export1, mountOptions: ["vers=4.2", "hard", "hard"] }),
      options: ["hard", "vers=4.2", "retry=0"],
    },
    {
      name: "the read-only flag of the claim counts, not that of the PersistentVolume",
      scene: () => claimed({ nfs: { ...export1, readOnly: true } }),
      options: ["retry=0"],
    },
    {
      name: "a claim that is read-only",
      scene: () => claimed({ nfs: export1 }, { readOnly: true }),
      options: ["ro", "retry=0"],
      readonly: true,
    },
    {
      name: "the annotation counts before the field",
      scene: () =>
        claimed(
          { nfs: export1, mountOptions: ["hard"] },
          { annotations: { "volume.beta.kubernetes.io/mount-options": "soft,,nolock" } },
        ),
      options: ["nolock", "soft", "retry=0"],
    },
    {
      name: "who chose how long mount.nfs tries keeps that",
      scene: () => claimed({ nfs: export1, mountOptions: ["retry=1"] }),
      options: ["retry=1"],
    },
  ];
  for (const one of cases) {
    test(one.name, async () => {
      const { directory = PERSISTENT, source = "10.0.0.9:/srv/data", readonly = false } = one;
      const scene = one.scene();
      await scene.prepare();
      assert.deepEqual([...scene.machine.mounts], [[directory, { type: "nfs", source, options: one.options }]]);
      assert.equal(scene.machine.modes.get(directory), 0o750);
      assert.deepEqual(scene.volumes.source(scene.web, "v"), {
        kind: "path",
        path: directory,
        readonly,
        isUsers: true,
        isRemote: true,
      });
    });
  }
});

describe("an NFS volume", () => {
  test("keeps the owners of the server: fsGroup is not applied", async () => {
    const scene = new VolumeScene(ofPod(export1));
    await scene.prepare({ ...scene.web, spec: { ...scene.web.spec, securityContext: { fsGroup: 7 } } });
    assert.equal(scene.machine.groups.size, 0);
  });

  test("is refused as a block device", async () => {
    assert.match(await claimed({ nfs: export1, volumeMode: "Block" }).refusal(), /specified in volumeMounts|no block/);
  });

  test("that cannot be mounted says so in the words of mount(8), and is tried again", async () => {
    const scene = new VolumeScene(ofPod(export1));
    const words = "mount failed: exit status 32\nOutput: mount.nfs: access denied by server";
    scene.machine.commandFaults.set("mount", new Error(words));
    const prepared = scene.prepare();
    await scene.clock.advance(0);
    assert.deepEqual(scene.events, [`FailedMount: MountVolume.SetUp failed for volume "v" : ${words}`]);
    assert.match(scene.next?.why ?? "", /^v since .*: mount failed: exit status 32/);
    scene.machine.commandFaults.clear();
    await scene.clock.advance(500);
    await prepared;
  });

  const advice: readonly (readonly [string, RegExp])[] = [
    ["you might need a /sbin/mount.<type> helper program.", /\(install the NFS client/],
    ["mount: unknown filesystem type 'nfs'.", /\(the kernel has no NFS client/],
    ["rpc.statd is not running but is required for remote locking.", /\(start rpc-statd/],
  ];
  for (const [words, want] of advice) {
    test(`on a machine that lacks a part: ${words}`, async () => {
      const scene = new VolumeScene(ofPod(export1));
      scene.machine.commandFaults.set("mount", new Error(words));
      assert.match(await scene.refusal(), want);
    });
  }

  test("that is mounted is not mounted again by another agent", async () => {
    const scene = new VolumeScene(ofPod(export1));
    await scene.prepare();
    scene.machine.done.length = 0;
    scene.volumes = scene.newAgent();
    await scene.prepare();
    assert.deepEqual(
      scene.machine.done.filter((line) => !line.startsWith("makeDir")),
      [],
    );
  });

  test("whose server does not answer says so, and stays mounted", async () => {
    const scene = new VolumeScene(ofPod(export1));
    await scene.prepare();
    scene.machine.kindOf = () => Promise.reject(new TimeLimitError(10_000));
    assert.match(await scene.refusal(), /what is mounted at .* does not answer: time limit of 10000 ms/);
    scene.volumes = scene.newAgent();
    assert.match(await scene.refusal(), /NFS server 10\.0\.0\.9 does not answer: stat .*time limit of 10000 ms/);
    assert.ok(scene.machine.mounts.has(INLINE));
  });

  test("whose handle went stale is mounted anew for the next container", async () => {
    const scene = new VolumeScene(ofPod(export1));
    await scene.prepare();
    scene.machine.done.length = 0;
    scene.machine.kindOf = () => Promise.reject(new Error("stat: cannot statx '/x': Stale file handle"));
    await scene.prepare();
    assert.deepEqual(
      scene.machine.done.filter((line) => line.includes("mount")),
      [`unmount ${INLINE}`, `mount ${INLINE}`],
    );
  });

  test("that somebody unmounted is mounted again for the next container", async () => {
    const scene = new VolumeScene(ofPod(export1));
    await scene.prepare();
    scene.machine.mounts.clear();
    await scene.prepare();
    assert.ok(scene.machine.mounts.has(INLINE));
  });

  test("after a reboot is mounted again, and its directory goes with its pod", async () => {
    const scene = new VolumeScene(ofPod(export1));
    await scene.prepare();
    scene.machine.mounts.clear();
    scene.volumes = scene.newAgent();
    await scene.prepare();
    assert.ok(scene.machine.mounts.has(INLINE));
    scene.machine.mounts.clear();
    assert.deepEqual(await scene.newAgent().removeOrphans(() => false, scene.never), []);
    assert.equal(scene.machine.modes.has(INLINE), false);
  });

  test("may be forced when it is unmounted: its server may be gone", async () => {
    const scene = new VolumeScene(ofPod(export1));
    await scene.prepare();
    scene.machine.commandFaults.set("unmount", new Error("hangs unless it is forced"));
    await scene.newAgent().teardown("uid-of-web", scene.never);
    assert.deepEqual([scene.machine.mounts.size, scene.machine.modes.has(INLINE)], [0, false]);
  });
});

describe("kill -9 after every call", () => {
  const scene = (machine: DoomedMachine): VolumeScene => new VolumeScene(ofPod(export1), {}, machine);
  const gone = (of: VolumeScene, round: string): void =>
    assert.deepEqual([of.machine.mounts.size, of.machine.modes.has(INLINE)], [0, false], round);

  test("of setting up: the next agent goes on, and tears down", async () => {
    const calls = await killedAfterEveryCall({
      scene,
      work: (of) => of.refusal(),
      next: async (of, round) => {
        await of.prepare();
        assert.equal(of.machine.mounts.size, 1, round);
        await of.volumes.teardown("uid-of-web", of.never);
        gone(of, round);
      },
    });
    assert.ok(calls >= 3, `${calls}`);
  });

  test("of tearing down: the next agent finds an orphan", async () => {
    const calls = await killedAfterEveryCall({
      scene,
      before: (of) => of.prepare(),
      work: (of) => of.volumes.teardown("uid-of-web", of.never),
      next: async (of, round) => {
        assert.deepEqual(await of.volumes.removeOrphans(() => false, of.never), [], round);
        gone(of, round);
      },
    });
    assert.ok(calls >= 2, `${calls}`);
  });
});
