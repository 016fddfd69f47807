import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { mountNamespace, runInMountNamespace } from "../../test/support/mount-namespace.ts";
import { pod } from "../../test/support/pods.ts";
import { LinuxHost } from "../adapters/host/index.ts";
import { ProjectBook } from "../adapters/host/project-book.ts";
import { ProjectQuotas } from "../adapters/host/project-quotas.ts";
import { LinuxQuotaCalls } from "../adapters/host/quota-calls.ts";
import { SystemCalls } from "../adapters/host/system-calls.ts";
import { LinuxVolumeHost } from "../adapters/host/volume-host.ts";
import { manyListeners } from "../lib/abort.ts";
import { SystemClock } from "../lib/clock.ts";
import { type Logger, silent } from "../lib/log.ts";
import type { StorageUsage } from "../model/pod-storage.ts";
import { StorageAccounts, VolumeReconciler } from "./index.ts";

// Mounts in a namespace of its own; the loop devices are the machine's and are given back.
const FIRST = 1_048_577;
const MIB = 2 ** 20;

interface Filesystem {
  readonly type: string;
  readonly make: readonly string[];
}

const FILESYSTEMS: readonly Filesystem[] = [
  { type: "ext4", make: ["mkfs.ext4", "-q", "-F", "-O", "project,quota", "-E", "quotatype=prjquota"] },
  { type: "xfs", make: ["mkfs.xfs", "-q", "-f"] },
];

/** Why a filesystem with quotas of projects cannot be had here. */
function whyNot({ type, make }: Filesystem): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  if (!existsSync("/dev/loop-control")) return "this machine has no loop devices";
  if (spawnSync(make[0] ?? "", ["-V"]).error !== undefined) return `${make[0]} is not installed`;
  const base = mkdtempSync(join(tmpdir(), "quota-"));
  try {
    // In a namespace of its own: the mount and its loop device go with the process.
    const args = ["--mount", "--propagation", "private", "mount", ...newFilesystem(base, { type, make })];
    return spawnSync("unshare", args).status === 0 ? undefined : `this kernel has no quotas of projects for ${type}`;
  } finally {
    rmSync(base, { recursive: true });
  }
}

/** The arguments of `mount` for a new filesystem at `disk`. */
function newFilesystem(base: string, { make }: Filesystem): readonly string[] {
  const image = join(base, "image");
  const disk = join(base, "disk");
  mkdirSync(disk);
  execFileSync("truncate", ["--size=512M", image]);
  const [command = "", ...args] = make;
  execFileSync(command, [...args, image]);
  return ["-o", "loop,prjquota", image, disk];
}

if (mountNamespace() === undefined) {
  for (const filesystem of FILESYSTEMS) {
    const skip = whyNot(filesystem) ?? false;
    test(`quotas of ${filesystem.type} in a mount namespace of their own`, { skip }, (t) => {
      const printed = runInMountNamespace(import.meta.url, filesystem.type);
      for (const line of printed.split("\n")) if (line.includes("took")) t.diagnostic(line);
    });
  }
} else {
  for (const filesystem of FILESYSTEMS) if (filesystem.type === mountNamespace()) defineTests(filesystem);
}

/** An agent's volumes on a filesystem of its own, with files of projects of its own. */
class Scene {
  readonly clock = new SystemClock();
  readonly stop = manyListeners();
  readonly warnings: string[] = [];
  readonly web = pod()
    .container("app")
    .with({ hostUsers: false, volumes: [{ name: "data", emptyDir: {} }] })
    .build();
  readonly directory: string;
  isByDevice = false;
  walks = 0;
  host: LinuxVolumeHost;

  constructor(readonly base: string) {
    this.host = this.newHost();
    this.directory = join(base, "disk/pods/uid-of-web/volumes/kubernetes.io~empty-dir/data");
  }

  newHost(): LinuxVolumeHost {
    const { clock } = this;
    const log: Logger = {
      ...silent,
      warn: (message, fields) => void this.warnings.push(JSON.stringify([message, fields])),
    };
    const lock = async (fd: number): Promise<void> => (await SystemCalls.load())?.lock(fd);
    const book = new ProjectBook({ clock, lock }, this.base);
    const calls = (): Promise<LinuxQuotaCalls | undefined> => LinuxQuotaCalls.create(this);
    const quotas = new ProjectQuotas({ calls, book, log, isOn: () => true });
    return new LinuxVolumeHost(new LinuxHost({ clock }), clock, { quotas });
  }

  reconciler(): VolumeReconciler {
    const { host, clock } = this;
    return new VolumeReconciler(
      {
        host,
        clock,
        log: silent,
        objects: { get: async () => undefined, onChange: () => undefined },
        node: { allocatable: {}, labels: {}, syncMs: 60_000 },
        event: () => undefined,
        waiting: () => undefined,
      },
      { rootDir: join(this.base, "disk") },
    );
  }

  /** What the agent says of the volume. */
  async usage(): Promise<StorageUsage> {
    const { host, clock } = this;
    const counting = {
      measure: (path: string) => {
        if (path === this.directory) this.walks++;
        return host.measure(path);
      },
      countedUsage: (path: string) => host.countedUsage(path),
      filesystemUsage: (path: string) => host.filesystemUsage(path),
    };
    const accounts = new StorageAccounts(
      { host: counting, clock, log: silent, layers: async () => [] },
      { rootDir: join(this.base, "disk"), podLogsDir: join(this.base, "logs") },
      this.stop.signal,
    );
    const found = (await accounts.read([this.web], this.stop)).get("uid-of-web");
    const usage = found?.parts.find(({ kind }) => kind === "emptyDir")?.usage;
    assert.ok(usage, "not measured");
    return usage;
  }

  async walked(): Promise<{ bytes: number; inodes: number }> {
    const walk = await this.host.measure(this.directory);
    try {
      const usage = await walk.advance(60_000);
      assert.ok(usage);
      return usage;
    } finally {
      await walk.close();
    }
  }

  file(name: "projects" | "projid"): string {
    const path = join(this.base, name);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }
}

function defineTests(filesystem: Filesystem): void {
  const within = async (work: (scene: Scene) => Promise<void>): Promise<void> => {
    const base = mkdtempSync(join(tmpdir(), "quota-"));
    execFileSync("mount", newFilesystem(base, filesystem));
    const scene = new Scene(base);
    try {
      await work(scene);
      assert.deepEqual(scene.warnings, []);
    } finally {
      scene.stop.abort();
      // Lazily: a test that failed may have files open.
      execFileSync("umount", ["--lazy", join(base, "disk")]);
      rmSync(base, { recursive: true });
    }
  };

  describe(`an emptyDir on ${filesystem.type}`, () => {
    test("tells at once what was written, without a walk, and as much as a walk would", () =>
      within(async (scene) => {
        await scene.reconciler().prepare(scene.web, scene.stop);
        const empty = await scene.usage();
        assert.deepEqual([empty.by, empty.inodes], ["quota", 1]);
        mkdirSync(join(scene.directory, "deep/er"), { recursive: true });
        writeFileSync(join(scene.directory, "deep/er/file"), Buffer.alloc(3 * MIB, 1));
        const full = await scene.usage();
        assert.deepEqual([full.by, full.inodes, scene.walks], ["quota", 4, 0]);
        assert.ok(full.bytes >= 3 * MIB && full.bytes < 3.1 * MIB, `${full.bytes} bytes before anything is synced`);
        execFileSync("sync", ["--file-system", scene.directory]);
        const { bytes, inodes } = await scene.usage();
        assert.deepEqual({ bytes, inodes }, await scene.walked());
      }));

    test("of 10,000 files costs no walk", (t: TestContext) =>
      within(async (scene) => {
        await scene.reconciler().prepare(scene.web, scene.stop);
        for (let i = 0; i < 10_000; i++) writeFileSync(join(scene.directory, `${i}`), "x");
        await scene.usage();
        const began = performance.now();
        const { inodes, by } = await scene.usage();
        const asked = performance.now();
        await scene.walked();
        t.diagnostic(
          `quota took ${(asked - began).toFixed(1)} ms, walk took ${(performance.now() - asked).toFixed(1)} ms`,
        );
        assert.deepEqual([inodes, by, scene.walks], [10_001, "quota", 0]);
      }));

    test("counts what is allocated of a sparse file, and a removed file until it is closed", () =>
      within(async (scene) => {
        await scene.reconciler().prepare(scene.web, scene.stop);
        const path = join(scene.directory, "file");
        const fd = openSync(path, "w");
        ftruncateSync(fd, 2 ** 30);
        assert.ok((await scene.usage()).bytes < MIB, "nothing of the hole");
        writeSync(fd, Buffer.alloc(2 * MIB, 1));
        unlinkSync(path);
        assert.ok((await scene.walked()).bytes < MIB, "a walk does not see it");
        const open = await scene.usage();
        assert.ok(open.bytes >= 2 * MIB && open.inodes === 2, JSON.stringify(open));
        closeSync(fd);
        const closed = await scene.usage();
        assert.ok(closed.bytes < MIB && closed.inodes === 1, JSON.stringify(closed));
      }));

    test("is counted on by the next agent, and gives its id back when the pod goes", () =>
      within(async (scene) => {
        await scene.reconciler().prepare(scene.web, scene.stop);
        assert.equal(scene.file("projects"), `${FIRST}:${scene.directory}\n`);
        assert.equal(scene.file("projid"), `volume${FIRST}:${FIRST}\n`);
        writeFileSync(join(scene.directory, "file"), Buffer.alloc(MIB, 1));
        scene.host = scene.newHost();
        await scene.reconciler().prepare(scene.web, scene.stop);
        const { by, bytes } = await scene.usage();
        assert.ok(by === "quota" && bytes >= MIB, `${bytes} bytes by ${by}`);
        await scene.reconciler().teardown("uid-of-web", scene.stop);
        assert.deepEqual([existsSync(scene.directory), scene.file("projects"), scene.file("projid")], [false, "", ""]);
      }));

    test("does not take an id that removed files still count for", () =>
      within(async (scene) => {
        const volumes = scene.reconciler();
        await volumes.prepare(scene.web, scene.stop);
        const path = join(scene.directory, "file");
        const fd = openSync(path, "w");
        writeSync(fd, Buffer.alloc(MIB, 1));
        await volumes.teardown("uid-of-web", scene.stop);
        await volumes.prepare(scene.web, scene.stop);
        assert.equal(scene.file("projects"), `${FIRST + 1}:${scene.directory}\n`);
        assert.equal((await scene.usage()).inodes, 1);
        closeSync(fd);
      }));

    test("is never refused anything: its limit is endless, whatever the default of the filesystem is", () =>
      within(async (scene) => {
        const fill = (path: string): void => {
          const fd = openSync(path, "w");
          try {
            for (let i = 0; i < 10; i++) writeSync(fd, Buffer.alloc(4 * MIB, 1));
          } finally {
            closeSync(fd);
          }
        };
        if (filesystem.type === "xfs") {
          execFileSync("xfs_quota", ["-x", "-c", "limit -p -d bhard=20m", join(scene.base, "disk")]);
          const other = join(scene.base, "disk/other");
          mkdirSync(other);
          const fd = openSync(other, "r");
          await (await LinuxQuotaCalls.load())?.setProject(fd, 42);
          closeSync(fd);
          assert.throws(() => fill(join(other, "file")), /ENOSPC|EDQUOT/, "the default holds for others");
        }
        await scene.reconciler().prepare(scene.web, scene.stop);
        fill(join(scene.directory, "file"));
        assert.ok((await scene.usage()).bytes >= 40 * MIB);
      }));

    test("in a directory that an administrator counts keeps the administrator's id and is walked", () =>
      within(async (scene) => {
        const calls = await LinuxQuotaCalls.load();
        assert.ok(calls);
        const disk = openSync(join(scene.base, "disk"), "r");
        await calls.setProject(disk, 42);
        await scene.reconciler().prepare(scene.web, scene.stop);
        writeFileSync(join(scene.directory, "file"), Buffer.alloc(MIB, 1));
        assert.equal((await scene.usage()).by, "walk");
        const own = openSync(scene.directory, "r");
        assert.deepEqual([await calls.project(own), scene.file("projects")], [42, ""]);
        closeSync(own);
        closeSync(disk);
      }));

    test("is asked for by its device, as kernels before 5.14 must be", () =>
      within(async (scene) => {
        scene.isByDevice = true;
        await scene.reconciler().prepare(scene.web, scene.stop);
        writeFileSync(join(scene.directory, "file"), Buffer.alloc(MIB, 1));
        const { by, bytes } = await scene.usage();
        assert.ok(by === "quota" && bytes >= MIB, `${bytes} bytes by ${by}`);
      }));

    test("of a user namespace cannot be taken out of what is counted, which the node's root can", () =>
      within(async (scene) => {
        await scene.reconciler().prepare(scene.web, scene.stop);
        const path = join(scene.directory, "file");
        writeFileSync(path, Buffer.alloc(MIB, 1));
        const change = ["chattr", "-p", "0", path];
        assert.notEqual(spawnSync("unshare", ["--user", "--map-root-user", ...change]).status, 0);
        assert.ok((await scene.usage()).bytes >= MIB);
        execFileSync(change[0] ?? "", change.slice(1));
        assert.ok((await scene.usage()).bytes < MIB);
      }));
  });
}
