import assert from "node:assert/strict";
import type { PathKind } from "../../src/adapters/host/path-kind.ts";
import type { VolumeHost } from "../../src/volumes/index.ts";

interface Written {
  readonly bytes: Uint8Array;
  readonly mode: number;
  readonly uid?: number;
}

/** A machine in memory: directories with modes, what is mounted, what was written, and the order in which it happened. */
export class VolumeMachine implements VolumeHost {
  readonly modes = new Map<string, number>();
  readonly kinds = new Map<string, PathKind>();
  /** What is mounted where: the size of a tmpfs, the page size of huge pages, the source of a bind mount. */
  readonly mounts = new Map<string, { type: string; size?: number; source?: string }>();
  readonly contents = new Map<string, ReadonlyMap<string, Written>>();
  readonly groups = new Map<string, { gid: number; onlyOnMismatch: boolean }>();
  /** Small files of the agent's own. */
  readonly files = new Map<string, string>();
  readonly done: string[] = [];
  /** Resolves before a tmpfs is mounted. */
  beforeMount: Promise<void> = Promise.resolve();
  /** What the next write rejects with. */
  writeFault: Error | undefined;

  makeDir(path: string, mode: number): Promise<void> {
    this.done.push(`makeDir ${path}`);
    if (!this.modes.has(path)) this.modes.set(path, mode);
    this.kinds.set(path, "directory");
    return Promise.resolve();
  }

  makeFile(path: string, mode: number): Promise<void> {
    this.done.push(`makeFile ${path}`);
    this.modes.set(path, mode);
    this.kinds.set(path, "file");
    return Promise.resolve();
  }

  kindOf(path: string): Promise<PathKind | undefined> {
    return Promise.resolve(this.kinds.get(path));
  }

  async mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void> {
    await this.beforeMount;
    this.mount(path, { type: "tmpfs", ...(options.sizeBytes === undefined ? {} : { size: options.sizeBytes }) });
    this.modes.set(path, options.mode);
  }

  async mountHugePages(path: string, { pageSizeBytes }: { pageSizeBytes: number; mode: number }): Promise<void> {
    this.mount(path, { type: "hugetlbfs", size: pageSizeBytes });
  }

  async bindMount(source: string, target: string): Promise<void> {
    this.mount(target, { type: "bind", source });
  }

  async mountDevice({ device, target, fsType, mayFormat }: Parameters<VolumeHost["mountDevice"]>[0]): Promise<void> {
    this.mount(target, { type: `${fsType ?? "found"}${mayFormat ? ", or made" : ""}`, source: device });
  }

  /** Directories that a filesystem with quotas of projects would count. */
  readonly counted = new Set<string>();

  async countUsage(path: string): Promise<void> {
    this.counted.add(path);
  }

  async stopCounting(path: string): Promise<void> {
    assert.ok(!this.modes.has(path), `${path} is not removed yet`);
    this.counted.delete(path);
  }

  isMountPoint(path: string): Promise<boolean> {
    return Promise.resolve(this.mounts.has(path));
  }

  mountsBelow(path: string): Promise<readonly string[]> {
    return Promise.resolve(
      [...this.mounts.keys()].filter((target) => target === path || target.startsWith(`${path}/`)),
    );
  }

  unmount(path: string): Promise<void> {
    const isBusy = [...this.mounts.keys()].some((target) => target.startsWith(`${path}/`));
    if (isBusy) return Promise.reject(new Error(`${path} is busy: something is mounted in it`));
    this.done.push(`unmount ${path}`);
    this.mounts.delete(path);
    this.contents.delete(path);
    return Promise.resolve();
  }

  async removeTree(path: string): Promise<void> {
    if ((await this.mountsBelow(path)).length > 0) throw new Error(`${path} is not removed: something is mounted`);
    const gone = [...this.modes.keys()].filter((entry) => entry === path || entry.startsWith(`${path}/`));
    if (gone.length > 0) this.done.push(`remove ${path}`);
    for (const entry of gone) {
      this.modes.delete(entry);
      this.kinds.delete(entry);
      this.files.delete(entry);
    }
    this.contents.delete(path);
  }

  removeDir(path: string): Promise<void> {
    assert.ok(!this.mounts.has(path), "an empty directory is removed, never a mount");
    const isEmpty = ![...this.modes.keys()].some((entry) => entry.startsWith(`${path}/`));
    if (!isEmpty) return Promise.reject(new Error(`${path} is not empty`));
    if (this.kinds.get(path) === "file") return Promise.reject(new Error(`${path} is not a directory`));
    this.done.push(`removeDir ${path}`);
    this.modes.delete(path);
    this.kinds.delete(path);
    return Promise.resolve();
  }

  list(path: string): Promise<readonly string[]> {
    const below = [...this.modes.keys()].filter((entry) => entry.startsWith(`${path}/`));
    return Promise.resolve([...new Set(below.map((entry) => entry.slice(path.length + 1).split("/")[0] ?? ""))]);
  }

  writeFiles(directory: string, request: { files: ReadonlyMap<string, Written>; gid?: number }): Promise<boolean> {
    const fault = this.writeFault;
    this.writeFault = undefined;
    if (fault !== undefined) return Promise.reject(fault);
    const shown = (files: ReadonlyMap<string, Written>): string => JSON.stringify([...files]);
    const before = this.contents.get(directory);
    if (before !== undefined && shown(before) === shown(request.files)) return Promise.resolve(false);
    this.done.push(`write ${directory}`);
    this.contents.set(directory, request.files);
    if (request.gid !== undefined) this.groups.set(directory, { gid: request.gid, onlyOnMismatch: false });
    return Promise.resolve(true);
  }

  changeGroup(path: string, { gid, onlyOnMismatch }: Parameters<VolumeHost["changeGroup"]>[1]): Promise<void> {
    this.done.push(`group ${path}`);
    this.groups.set(path, { gid, onlyOnMismatch });
    return Promise.resolve();
  }

  bindSubPath({ root, subPath, target }: { root: string; subPath: string; target: string }): Promise<void> {
    this.modes.set(target, 0o750);
    this.mounts.set(target, { type: "bind", source: `${root}/${subPath}` });
    return Promise.resolve();
  }

  readFile(path: string): Promise<string | undefined> {
    return Promise.resolve(this.files.get(path));
  }

  replaceFile(path: string, text: string): Promise<void> {
    this.done.push(`replaceFile ${path}`);
    this.modes.set(path, 0o600);
    this.kinds.set(path, "file");
    this.files.set(path, text);
    return Promise.resolve();
  }

  removeFile(path: string): Promise<void> {
    this.done.push(`removeFile ${path}`);
    for (const map of [this.modes, this.kinds, this.files]) map.delete(path);
    return Promise.resolve();
  }

  /** The texts that a written volume holds. */
  texts(directory: string): Record<string, string> {
    const files = this.contents.get(directory) ?? new Map<string, Written>();
    return Object.fromEntries([...files].map(([path, { bytes }]) => [path, Buffer.from(bytes).toString()]));
  }

  private mount(path: string, what: { type: string; size?: number; source?: string }): void {
    assert.equal(this.mounts.has(path), false, "mounted twice");
    this.done.push(`mount ${path}`);
    this.mounts.set(path, what);
  }
}
