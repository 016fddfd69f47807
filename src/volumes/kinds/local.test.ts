import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClaimedScene } from "../../../test/support/claimed-volume.ts";
import { type DoomedMachine, killedAfterEveryCall } from "../../../test/support/doomed-machine.ts";
import type { VolumeMachine } from "../../../test/support/volume-machine.ts";

const STAGED = "/root/plugins/kubernetes.io/local-volume/mounts/pv-1";
const mountOf = (name: string): string => `/root/pods/uid-of-${name}/volumes/kubernetes.io~local-volume/pv-1`;

function scene(path: string, more: { volumeMode?: string; machine?: VolumeMachine; accessModes?: string[] } = {}) {
  const { machine, ...spec } = more;
  const made = new ClaimedScene({ local: { path }, ...spec }, machine && { machine });
  made.machine.kinds.set("/mnt/disk", "directory");
  made.machine.kinds.set("/dev/sdx", "blockDevice");
  return made;
}

const assertGone = (of: ClaimedScene, round = ""): void => assert.deepEqual(of.left("pv-1"), [], round);

describe("a local directory for one pod at a time", () => {
  const once = { accessModes: ["ReadWriteOncePod"] };

  test("is refused to the second, also by the next agent, until the first is gone", async () => {
    const of = scene("/mnt/disk", once);
    await of.prepare(of.user("a"));
    assert.match(await of.refusal(of.user("b")), /already in use by another pod/);
    of.volumes = of.newAgent();
    assert.match(await of.refusal(of.user("c")), /already in use by another pod/);
    await of.teardown("a");
    await of.prepare(of.user("b"));
    for (const name of ["b", "c"]) await of.teardown(name);
    assertGone(of);
  });

  test("goes to one of two that come at once", async () => {
    const of = scene("/mnt/disk", once);
    await Promise.all(["a", "b"].map((name) => of.refusal(of.user(name))));
    assert.equal([...of.machine.mounts.keys()].length, 1);
  });
});

describe("a local device", () => {
  test("is mounted once for two pods, and unmounted by the last of them only", async () => {
    const of = scene("/dev/sdx");
    await Promise.all([of.prepare(of.user("a")), of.prepare(of.user("b"))]);
    assert.deepEqual([...of.machine.mounts.keys()].sort(), [STAGED, mountOf("a"), mountOf("b")].sort());
    of.loseApiServer();
    await of.teardown("a");
    assert.deepEqual([...of.machine.mounts.keys()].sort(), [STAGED, mountOf("b")].sort());
    await of.teardown("b");
    assertGone(of);
  });

  test("of which somebody else has a mount stays mounted until that is gone", async () => {
    const of = scene("/dev/sdx");
    await of.prepare(of.user("a"));
    of.machine.mounts.set("/mnt/by-hand", { type: "bind", source: STAGED });
    await of.teardown("a");
    assert.deepEqual([...of.machine.mounts.keys()], [STAGED, "/mnt/by-hand"]);
    of.machine.mounts.delete("/mnt/by-hand");
    await of.clock.advance(500);
    assertGone(of);
  });

  test("for one pod at a time refuses the second in the words of Kubernetes", async () => {
    const of = scene("/dev/sdx", { accessModes: ["ReadWriteOncePod"] });
    await of.prepare(of.user("a"));
    const why = "volume uses the ReadWriteOncePod access mode and is already in use by another pod";
    assert.match(await of.refusal(of.user("b")), new RegExp(why));
    await of.teardown("a");
    await of.prepare(of.user("b"));
  });

  test("that the original kubelet set up is torn down by what is mounted", async () => {
    const of = scene("/dev/sdx");
    for (const path of [STAGED, mountOf("a")]) await of.machine.makeDir(path, 0o750);
    of.machine.mounts.set(STAGED, { type: "ext4", source: "/dev/sdx" });
    of.machine.mounts.set(mountOf("a"), { type: "bind", source: STAGED });
    await of.teardown("a");
    await of.clock.advance(1000);
    assertGone(of);
  });

  test("that a reboot left unmounted is mounted again, and its directories go with its pod", async () => {
    const of = scene("/dev/sdx");
    await of.prepare(of.user("a"));
    of.machine.mounts.clear();
    of.volumes = of.newAgent();
    await of.prepare(of.user("a"));
    assert.deepEqual([...of.machine.mounts.keys()], [STAGED, mountOf("a")]);
    of.machine.mounts.clear();
    of.volumes = of.newAgent();
    assert.deepEqual(await of.volumes.removeOrphans(() => false, of.never), []);
    assertGone(of);
  });
});

describe("a local directory", () => {
  test("keeps the group of the first pod as long as another has it", async () => {
    const of = scene("/mnt/disk");
    const security = (fsGroup: number) => ({ securityContext: { fsGroup } });
    await of.prepare(of.user("a", security(7)));
    of.machine.otherMounts = async (path) => (path === mountOf("b") ? [mountOf("a")] : []);
    await of.prepare(of.user("b", security(8)));
    assert.deepEqual([of.machine.groups.get(mountOf("a"))?.gid, of.machine.groups.has(mountOf("b"))], [7, false]);
    const why = "The requested fsGroup is 8, but the volume pv-1 has GID 7. The volume may not be shareable.";
    assert.deepEqual(
      of.events.filter((event) => /AlreadyMounted/.test(event)),
      [`AlreadyMountedVolume: ${why}`],
    );
  });

  test("of the same group is shared without a word", async () => {
    const of = scene("/mnt/disk");
    const securityContext = { fsGroup: 7 };
    await of.prepare(of.user("a", { securityContext }));
    of.machine.otherMounts = async (path) => (path === mountOf("a") ? [] : [mountOf("a")]);
    await of.prepare(of.user("b", { securityContext }));
    await of.prepare(of.user("c"));
    assert.deepEqual(of.events, []);
  });

  test("gets the mount options of its PersistentVolume", async () => {
    const of = new ClaimedScene({ local: { path: "/mnt/disk" }, mountOptions: ["noexec", "nodev"] });
    of.machine.kinds.set("/mnt/disk", "directory");
    await of.prepare(of.user("a"));
    assert.deepEqual(of.machine.mounts.get(mountOf("a"))?.options, ["nodev", "noexec"]);
  });
});

for (const [name, path, volumeMode] of [
  ["a device with a filesystem", "/dev/sdx", "Filesystem"],
  ["a device as it is", "/dev/sdx", "Block"],
  ["a directory", "/mnt/disk", "Filesystem"],
] as const) {
  describe(`kill -9 after every call, of ${name}`, () => {
    const made = (machine: DoomedMachine): ClaimedScene => scene(path, { machine, volumeMode });

    test("setting up: the next agent goes on, and tears down without an API server", async () => {
      const calls = await killedAfterEveryCall({
        scene: made,
        work: (of) => of.refusal(of.user("a")),
        next: async (of, round) => {
          await of.prepare(of.user("a"));
          of.loseApiServer();
          await of.teardown("a");
          assertGone(of, round);
        },
      });
      assert.ok(calls >= 5, `${calls}`);
    });

    test("setting up: the next agent finds an orphan", async () => {
      await killedAfterEveryCall({
        scene: made,
        work: (of) => of.refusal(of.user("a")),
        next: async (of, round) => {
          of.loseApiServer();
          assert.deepEqual(await of.volumes.removeOrphans(() => false, of.never), [], round);
          assertGone(of, round);
        },
      });
    });

    test("tearing down one of two: the other keeps what it has", async () => {
      await killedAfterEveryCall({
        scene: made,
        before: async (of) => {
          for (const one of ["a", "b"]) await of.prepare(of.user(one));
        },
        work: (of) => of.teardown("a"),
        next: async (of, round) => {
          of.loseApiServer();
          await of.teardown("a");
          const left = [...of.machine.mounts.keys()].filter((target) => target.includes("uid-of-b"));
          assert.equal(left.length, 1, round);
          assert.deepEqual(await of.newAgent().removeOrphans(() => false, of.never), [], round);
          assertGone(of, round);
        },
      });
    });
  });
}

describe("a local volume whose claim has grown", () => {
  const grown = async (path: string, volumeMode = "Filesystem") => {
    const of = new ClaimedScene({ local: { path }, volumeMode, capacity: { storage: "2Gi" } });
    of.machine.kinds.set("/mnt/disk", "directory");
    of.machine.kinds.set("/dev/sdx", "blockDevice");
    of.machine.onRun = async (command) => ({ code: 0, stdout: command[0] === "blkid" ? "ext4\n" : "", stderr: "" });
    const claim = {
      metadata: { name: "data", namespace: "default", uid: "claim-1", resourceVersion: "1" },
      spec: { volumeName: "pv-1" },
      status: { phase: "Bound", capacity: { storage: "1Gi" } },
    };
    of.objects.put({ kind: "PersistentVolumeClaim", namespace: "default", name: "data" }, claim);
    const patches: unknown[] = [];
    const patchStatus = async (_of: unknown, patch: object) => {
      patches.push(patch);
      return claim;
    };
    of.volumes = of.newAgent({ claims: { patchStatus } });
    await of.prepare(of.user("a"));
    return { patches, ran: of.machine.done.filter((step) => step.startsWith("run ")) };
  };
  const done = { metadata: { resourceVersion: "1" }, status: { capacity: { storage: "2Gi" } } };

  test("has the filesystem of its device grown before the pod starts, and the claim says so", async () => {
    const { patches, ran } = await grown("/dev/sdx");
    assert.deepEqual(ran, ["run blkid -p -s TYPE -o value -- /dev/sdx", "run resize2fs /dev/sdx"]);
    assert.deepEqual(patches, [done]);
  });

  for (const [name, path, mode] of [
    ["is a directory", "/mnt/disk", "Filesystem"],
    ["is a device for containers", "/dev/sdx", "Block"],
  ] as const) {
    test(`and ${name} needs nothing, and the claim has its size`, async () => {
      const { patches, ran } = await grown(path, mode);
      assert.deepEqual([ran, patches], [[], [done]]);
    });
  }
});
