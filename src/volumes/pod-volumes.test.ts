import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import type { Pod, Volume } from "../model/generated/types.ts";
import { type PathKind, PodVolumes, type VolumeHost } from "./index.ts";

const never = { signal: new AbortController().signal };
const POD_DIR = "/root/pods/uid-of-web";
const EMPTY_DIRS = `${POD_DIR}/volumes/kubernetes.io~empty-dir`;

/** A machine in memory: directories with modes, what is mounted, and the order in which it happened. */
class Machine implements VolumeHost {
  readonly modes = new Map<string, number>();
  readonly kinds = new Map<string, PathKind>();
  readonly mounts = new Map<string, number | undefined>();
  readonly done: string[] = [];
  /** Resolves before a tmpfs is mounted. */
  beforeMount: Promise<void> = Promise.resolve();

  makeDir(path: string, mode: number): Promise<void> {
    this.done.push(`makeDir ${path}`);
    if (!this.modes.has(path)) this.modes.set(path, mode);
    return Promise.resolve();
  }

  makeFile(path: string, mode: number): Promise<void> {
    this.done.push(`makeFile ${path}`);
    this.modes.set(path, mode);
    return Promise.resolve();
  }

  kindOf(path: string): Promise<PathKind | undefined> {
    return Promise.resolve(this.kinds.get(path));
  }

  async mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void> {
    await this.beforeMount;
    assert.equal(this.mounts.has(path), false, "mounted twice");
    this.done.push(`mount ${path}`);
    this.mounts.set(path, options.sizeBytes);
    this.modes.set(path, options.mode);
  }

  isMountPoint(path: string): Promise<boolean> {
    return Promise.resolve(this.mounts.has(path));
  }

  unmount(path: string): Promise<void> {
    this.done.push(`unmount ${path}`);
    this.mounts.delete(path);
    return Promise.resolve();
  }

  removeTree(path: string): Promise<void> {
    this.done.push(`remove ${path}`);
    if (this.mounts.has(path)) throw new Error(`${path} is a mount`);
    this.modes.delete(path);
    return Promise.resolve();
  }

  list(path: string): Promise<readonly string[]> {
    const below = [...this.modes.keys()].filter((entry) => entry.startsWith(`${path}/`));
    return Promise.resolve(below.map((entry) => entry.slice(path.length + 1)));
  }
}

function setup(...volumes: readonly Volume[]): { machine: Machine; volumes: PodVolumes; web: Pod } {
  const machine = new Machine();
  const web = pod().container("app").with({ volumes }).build();
  return { machine, web, volumes: new PodVolumes({ host: machine }, { rootDir: "/root" }) };
}

const disk: Volume = { name: "disk", emptyDir: {} };
const memory: Volume = { name: "fast", emptyDir: { medium: "Memory" } };

describe("emptyDir", () => {
  test("is a directory of its own that everybody in the pod may write to, below one that is closed to others", async () => {
    const { machine, volumes, web } = setup(disk);
    await volumes.prepare(web, never);
    assert.deepEqual(
      [...machine.modes],
      [
        [POD_DIR, 0o750],
        [`${EMPTY_DIRS}/disk`, 0o777],
      ],
    );
    assert.equal(volumes.hostPath(web, "disk"), `${EMPTY_DIRS}/disk`);
    assert.equal(machine.mounts.size, 0);
  });

  test("of memory is mounted once, however often it is prepared", async () => {
    const { machine, volumes, web } = setup(memory);
    await volumes.prepare(web, never);
    await volumes.prepare(web, never);
    assert.deepEqual([...machine.mounts.keys()], [`${EMPTY_DIRS}/fast`]);
    assert.equal(machine.modes.get(`${EMPTY_DIRS}/fast`), 0o777);
  });

  const limited = { resources: { limits: { memory: "64Mi" } } };
  const sizes: { name: string; sizeLimit?: string; pod: (volume: Volume) => Pod; want: number | undefined }[] = [
    {
      name: "no limit at all leaves the size to the kernel",
      pod: (volume) =>
        pod()
          .container("app")
          .with({ volumes: [volume] })
          .build(),
      want: undefined,
    },
    {
      name: "its own limit is the size, rounded up to bytes",
      sizeLimit: "1500m",
      pod: (volume) =>
        pod()
          .container("app")
          .with({ volumes: [volume] })
          .build(),
      want: 2,
    },
    {
      name: "a limit of 0 is none",
      sizeLimit: "0",
      pod: (volume) =>
        pod()
          .container("app")
          .with({ volumes: [volume] })
          .build(),
      want: undefined,
    },
    {
      name: "the pod's memory limit bounds it, being the memory that it comes from",
      sizeLimit: "1Gi",
      pod: (volume) =>
        pod()
          .container("a", limited)
          .container("b", limited)
          .with({ volumes: [volume] })
          .build(),
      want: 128 * 2 ** 20,
    },
    {
      name: "a smaller limit of its own stays",
      sizeLimit: "1Mi",
      pod: (volume) =>
        pod()
          .container("a", limited)
          .with({ volumes: [volume] })
          .build(),
      want: 2 ** 20,
    },
    {
      name: "a pod with one unlimited container has no memory limit",
      pod: (volume) =>
        pod()
          .container("a", limited)
          .container("b")
          .with({ volumes: [volume] })
          .build(),
      want: undefined,
    },
  ];
  for (const { name, sizeLimit, pod: build, want } of sizes) {
    test(`of memory: ${name}`, async () => {
      const { machine, volumes } = setup();
      const volume = { name: "fast", emptyDir: { medium: "Memory", ...(sizeLimit && { sizeLimit }) } };
      await volumes.prepare(build(volume), never);
      assert.deepEqual([...machine.mounts.values()], [want]);
    });
  }
});

describe("hostPath", () => {
  const at = (type?: string): Volume => ({ name: "host", hostPath: { path: "/data/x", ...(type && { type }) } });

  test("is the path itself", () => {
    const { volumes, web } = setup(at());
    assert.equal(volumes.hostPath(web, "host"), "/data/x");
  });

  const accepted: [string | undefined, PathKind | undefined, string[]][] = [
    [undefined, undefined, []],
    ["DirectoryOrCreate", undefined, ["makeDir /data/x"]],
    ["DirectoryOrCreate", "directory", []],
    ["FileOrCreate", undefined, ["makeFile /data/x"]],
    ["FileOrCreate", "file", []],
    ["Directory", "directory", []],
    ["File", "file", []],
    ["Socket", "socket", []],
    ["CharDevice", "charDevice", []],
    ["BlockDevice", "blockDevice", []],
  ];
  for (const [type, found, want] of accepted) {
    test(`type "${type ?? ""}" takes ${found ?? "nothing"} at the path`, async () => {
      const { machine, volumes, web } = setup(at(type));
      if (found !== undefined) machine.kinds.set("/data/x", found);
      await volumes.prepare(web, never);
      assert.deepEqual(machine.done.slice(1), want);
    });
  }

  test("what it creates has the modes 0755 and 0644", async () => {
    const { machine, volumes, web } = setup(at("DirectoryOrCreate"));
    await volumes.prepare(web, never);
    assert.equal(machine.modes.get("/data/x"), 0o755);
    const file = setup(at("FileOrCreate"));
    await file.volumes.prepare(file.web, never);
    assert.equal(file.machine.modes.get("/data/x"), 0o644);
  });

  const refused: [string, PathKind | undefined, string][] = [
    ["Directory", undefined, "/data/x is not a directory, there is nothing"],
    ["Directory", "file", "/data/x is not a directory, there is a file"],
    ["DirectoryOrCreate", "file", "/data/x is not a directory, there is a file"],
    ["File", "directory", "/data/x is not a file, there is a directory"],
    ["FileOrCreate", "directory", "/data/x is not a file, there is a directory"],
    ["Socket", "file", "/data/x is not a socket file, there is a file"],
    ["CharDevice", "blockDevice", "/data/x is not a character device, there is a block device"],
    ["BlockDevice", undefined, "/data/x is not a block device, there is nothing"],
    ["Directroy", undefined, 'hostPath.type "Directroy" is not known'],
  ];
  for (const [type, found, why] of refused) {
    test(`type "${type}" refuses ${found ?? "nothing"} at the path and makes nothing there`, async () => {
      const { machine, volumes, web } = setup(at(type));
      if (found !== undefined) machine.kinds.set("/data/x", found);
      await assert.rejects(volumes.prepare(web, never), (error: Error) => {
        assert.ok(error.message.includes(`volume "host" : hostPath type check failed: ${why}`), error.message);
        return true;
      });
      assert.equal(machine.modes.has("/data/x"), false);
    });
  }
});

describe("the volumes of a pod", () => {
  test("a pod without volumes has no directory made for it", async () => {
    const { machine, volumes, web } = setup();
    await volumes.prepare(web, never);
    assert.deepEqual(machine.done, []);
  });

  test("a problem is told only when every other volume is done, because then they may be taken down", async () => {
    const { machine, volumes, web } = setup({ name: "host", hostPath: { path: "/gone", type: "File" } }, memory);
    let release = (): void => undefined;
    machine.beforeMount = new Promise((resolve) => {
      release = resolve;
    });
    let told = false;
    const prepared = volumes.prepare(web, never).catch((error: unknown) => {
      told = true;
      return error;
    });
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    assert.equal(told, false);
    release();
    assert.match(String(await prepared), /is not a file/);
    assert.equal(machine.mounts.size, 1);
  });

  test("a kind that is not known is a problem of that volume", async () => {
    const { volumes, web } = setup({ name: "odd", nfs: { server: "a", path: "/" } });
    await assert.rejects(volumes.prepare(web, never), /volume "odd" is of a kind that is not supported/);
  });

  test("a mount of a volume that the pod does not have says which", () => {
    const { volumes, web } = setup(disk);
    assert.throws(() => volumes.hostPath(web, "other"), /volumeMounts names the volume "other"/);
  });

  test("are taken down by what is there, unmounted before they are removed, and the user's own are not touched", async () => {
    const { machine, volumes, web } = setup(disk, memory, { name: "host", hostPath: { path: "/data/x" } });
    await volumes.prepare(web, never);
    machine.modes.set("/data/x", 0o755);
    machine.done.length = 0;
    await volumes.teardown("uid-of-web", never);
    assert.deepEqual(machine.done, [
      `remove ${EMPTY_DIRS}/disk`,
      `unmount ${EMPTY_DIRS}/fast`,
      `remove ${EMPTY_DIRS}/fast`,
    ]);
    assert.equal(machine.mounts.size, 0);
    assert.equal(machine.modes.has("/data/x"), true);
  });

  test("may be taken down twice, and only those of this pod go", async () => {
    const { machine, volumes, web } = setup(disk);
    const other = pod("other")
      .container("app")
      .with({ volumes: [disk] })
      .build();
    await volumes.prepare(web, never);
    await volumes.prepare(other, never);
    await volumes.teardown("uid-of-web", never);
    await volumes.teardown("uid-of-web", never);
    assert.equal(machine.modes.has("/root/pods/uid-of-other/volumes/kubernetes.io~empty-dir/disk"), true);
    assert.equal(machine.modes.has(`${EMPTY_DIRS}/disk`), false);
  });

  test("an abort ends the taking down between two volumes", async () => {
    const { machine, volumes, web } = setup(disk, memory);
    await volumes.prepare(web, never);
    await assert.rejects(volumes.teardown("uid-of-web", { signal: AbortSignal.abort() }));
    assert.equal(machine.modes.has(`${EMPTY_DIRS}/disk`), true);
  });
});
