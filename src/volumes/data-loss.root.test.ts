import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mountNamespace, runInMountNamespace } from "../../test/support/mount-namespace.ts";
import { pod } from "../../test/support/pods.ts";
import { LinuxHost } from "../adapters/host/index.ts";
import { readMountTable } from "../adapters/host/mount-table.ts";
import { LinuxVolumeHost } from "../adapters/host/volume-host.ts";
import { SystemClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from "../model/generated/types.ts";
import type { ObjectKind, ObjectKinds, ObjectRef, ObjectSource } from "../model/object-source.ts";
import { VolumeReconciler } from "./index.ts";

// Tries to make the agent delete a user's data. Everything is mounted in a namespace of its own.

if (mountNamespace() === undefined) {
  test("volumes never delete what is the user's", { skip: process.getuid?.() !== 0 && "needs root" }, () => {
    runInMountNamespace(import.meta.url);
  });
} else {
  defineTests();
}

interface Scene {
  readonly root: string;
  readonly data: string;
  readonly web: Pod;
  readonly volumes: VolumeReconciler;
  readonly host: LinuxVolumeHost;
  /** Where a volume of the pod lies. */
  directory(plugin: string, name: string): string;
}

const never = { signal: new AbortController().signal };
const UID = "uid-of-web";

function defineTests(): void {
  const attempt = (
    name: string,
    volumes: (data: string) => readonly Volume[],
    work: (scene: Scene) => Promise<void>,
  ): void =>
    void test(name, async () => {
      const base = mkdtempSync(join(tmpdir(), "volume-loss-"));
      const [root, data] = [join(base, "root"), join(base, "data")];
      mkdirSync(join(data, "deep"), { recursive: true });
      for (const file of ["precious", "deep/precious"]) writeFileSync(join(data, file), "keep");
      const clock = new SystemClock();
      const host = new LinuxVolumeHost(new LinuxHost({ clock }), clock);
      const reconciler = new VolumeReconciler(
        {
          host,
          clock,
          log: silent,
          objects: localObjects(data),
          node: { allocatable: {}, labels: {}, syncMs: 60_000 },
          event: () => undefined,
          waiting: () => undefined,
        },
        { rootDir: root },
      );
      const web = pod()
        .container("app")
        .with({ volumes: volumes(data) })
        .build();
      const directory = (plugin: string, volume: string): string =>
        join(root, "pods", UID, "volumes", `kubernetes.io~${plugin}`, volume);
      try {
        await reconciler.prepare(web, never);
        await work({ root, data, web, volumes: reconciler, host, directory });
        for (const file of ["precious", "deep/precious"]) assert.equal(readFileSync(join(data, file), "utf8"), "keep");
      } finally {
        const targets = readMountTable().map(({ target }) => target);
        for (const target of targets.reverse()) if (target.startsWith(base)) execFileSync("umount", ["--lazy", target]);
        rmSync(base, { recursive: true });
      }
    });
  const disk = (): readonly Volume[] => [{ name: "disk", emptyDir: {} }];
  const gone = (scene: Scene): void => {
    assert.equal(existsSync(join(scene.root, "pods", UID)), false);
    assert.deepEqual(
      readMountTable().filter(({ target }) => target.startsWith(scene.root)),
      [],
    );
  };
  /** All that the agent does when a pod goes. */
  const remove = async ({ volumes, host, root }: Scene): Promise<void> => {
    await volumes.teardown(UID, never);
    await host.removeTree(join(root, "pods", UID));
  };

  attempt(
    "a hostPath and its subPath",
    (path) => [{ name: "host", hostPath: { path } }],
    async (scene) => {
      const place = { volume: "host", container: "app", index: 0, subPath: "deep" };
      const target = await scene.volumes.subPath(scene.web, place, never);
      assert.equal(readFileSync(join(target, "precious"), "utf8"), "keep");
      await remove(scene);
      gone(scene);
    },
  );

  attempt("a link in an emptyDir", disk, async (scene) => {
    symlinkSync(scene.data, join(scene.directory("empty-dir", "disk"), "link"));
    await remove(scene);
    gone(scene);
  });

  attempt("a bind mount in an emptyDir: refused until it is unmounted", disk, async (scene) => {
    const bound = join(scene.directory("empty-dir", "disk"), "a/bound");
    mkdirSync(bound, { recursive: true });
    execFileSync("mount", ["--bind", scene.data, bound]);
    await assert.rejects(remove(scene), /Mounted|mounted/);
    await assert.rejects(scene.host.removeTree(join(scene.root, "pods", UID)), /mounted/);
    await scene.volumes.removeOrphans(() => false, never);
    execFileSync("umount", [bound]);
    await remove(scene);
    gone(scene);
  });

  attempt("a mount that appears between the check and the removal", disk, async (scene) => {
    const volume = scene.directory("empty-dir", "disk");
    mkdirSync(join(volume, "z/bound"), { recursive: true });
    for (let i = 0; i < 300; i++) writeFileSync(join(volume, `file-${i}`), "");
    const removing = remove(scene);
    const mounting = new Promise<void>((resolve, reject) => {
      setImmediate(() => {
        const { status } = spawnSync("mount", ["--bind", scene.data, join(volume, "z/bound")]);
        if (status === 0) resolve();
        else reject(new Error("the directory was gone before the mount came"));
      });
    });
    const [removed, mounted] = await Promise.allSettled([removing, mounting]);
    // Either may be first; if the mount stands, the removal must have stopped at it.
    if (mounted.status === "fulfilled") {
      assert.equal(removed.status, "rejected");
      execFileSync("umount", [join(volume, "z/bound")]);
    }
    await remove(scene);
    gone(scene);
  });

  attempt(
    "a local volume, also when its mount cannot be ended",
    () => [{ name: "local", persistentVolumeClaim: { claimName: "claim" } }],
    async (scene) => {
      const directory = scene.directory("local-volume", "pv");
      assert.equal(readFileSync(join(directory, "precious"), "utf8"), "keep");
      const busy = spawn("sleep", ["60"], { cwd: directory, stdio: "ignore" });
      const ended = new Promise((resolve) => busy.once("exit", resolve));
      await new Promise((resolve) => busy.once("spawn", resolve));
      await assert.rejects(scene.volumes.teardown(UID, never), /unmount/);
      busy.kill("SIGKILL");
      await ended;
      await scene.volumes.teardown(UID, never);
      await remove(scene);
      gone(scene);
    },
  );

  attempt(
    "a local volume whose mount somebody else ended, with data under it",
    () => [{ name: "local", persistentVolumeClaim: { claimName: "claim" } }],
    async (scene) => {
      const directory = scene.directory("local-volume", "pv");
      execFileSync("umount", [directory]);
      writeFileSync(join(directory, "precious"), "keep");
      await assert.rejects(scene.volumes.teardown(UID, never));
      assert.equal(readFileSync(join(directory, "precious"), "utf8"), "keep");
    },
  );

  attempt(
    "a second mount over a tmpfs",
    () => [{ name: "fast", emptyDir: { medium: "Memory" } }],
    async (scene) => {
      execFileSync("mount", ["--bind", scene.data, scene.directory("empty-dir", "fast")]);
      await remove(scene);
      gone(scene);
    },
  );
}

/** A claim that is bound to a local volume at the path. */
function localObjects(path: string): ObjectSource {
  const claim: PersistentVolumeClaim = {
    metadata: { uid: "c" },
    spec: { volumeName: "pv" },
    status: { phase: "Bound" },
  };
  const volume: PersistentVolume = { metadata: { name: "pv" }, spec: { local: { path }, claimRef: { uid: "c" } } };
  const known: Partial<ObjectKinds> = { PersistentVolumeClaim: claim, PersistentVolume: volume };
  return {
    get: <K extends ObjectKind>({ kind }: ObjectRef<K>) => Promise.resolve(known[kind]),
    onChange: () => undefined,
  };
}
