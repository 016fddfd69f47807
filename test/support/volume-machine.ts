import assert from "node:assert/strict";
import type { PathKind } from "../../src/adapters/host/path-kind.ts";
import type { CommandResult } from "../../src/adapters/host/volume-host.ts";
import type { VolumeHost } from "../../src/volumes/index.ts";

interface Written {
  readonly bytes: Uint8Array;
  readonly mode: number;
  readonly uid?: number;
}

interface MountOf {
  readonly type: string;
  readonly size?: number;
  readonly source?: string;
  readonly options?: readonly string[];
  readonly superOptions?: readonly string[];
}

/** A machine in memory: directories with modes, what is mounted, what was written, and the order in which it happened. */
export class VolumeMachine implements VolumeHost {
  readonly modes = new Map<string, number>();
  readonly kinds = new Map<string, PathKind>();
  /** What is mounted where: the size of a tmpfs, the page size of huge pages, the source of a bind mount. */
  readonly mounts = new Map<string, MountOf>();
  readonly links = new Map<string, string>();
  readonly contents = new Map<string, ReadonlyMap<string, Written>>();
  readonly groups = new Map<string, { gid: number; onlyOnMismatch: boolean }>();
  /** Small files of the agent's own. */
  readonly files = new Map<string, string>();
  readonly done: string[] = [];
  /** Resolves before a tmpfs is mounted. */
  beforeMount: Promise<void> = Promise.resolve();
  /** What the next write rejects with. */
  writeFault: Error | undefined;
  /** What mounts, binds and unmounts by a command reject with, by the first word of `done`. */
  readonly commandFaults = new Map<"mount" | "bind" | "unmount", Error>();
  /** Answers commands of others; rejects with what it throws. */
  onRun: (command: readonly string[], input: string | undefined) => CommandResult | Promise<CommandResult> = (
    command,
  ) => {
    throw new Error(`${command[0]}: not found`);
  };

  /** The machine as one agent sees it. */
  asHost(): VolumeHost {
    return this;
  }

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
    if (this.kinds.get(source) === "blockDevice") this.kinds.set(target, "blockDevice");
  }

  async mountDevice(request: Parameters<VolumeHost["mountDevice"]>[0]): Promise<void> {
    const { device, target, fsType, mayFormat, options } = request;
    const type = `${fsType ?? "found"}${mayFormat ? ", or made" : ""}`;
    this.mount(target, { type, source: device, ...(options && { options }) });
  }

  async mountByCommand({ source, target, type, options }: Parameters<VolumeHost["mountByCommand"]>[0]): Promise<void> {
    this.failIf("mount");
    this.mount(target, { type, source, options });
  }

  async bindByCommand({ source, target, options }: Parameters<VolumeHost["bindByCommand"]>[0]): Promise<void> {
    this.failIf("bind");
    this.mount(target, { type: "bind", source, options });
  }

  async unmountByCommand(path: string, { mayForce = false }: { mayForce?: boolean }): Promise<void> {
    if (!this.mounts.has(path)) return;
    if (!mayForce) this.failIf("unmount");
    await this.unmount(path);
  }

  async unmountByForce(path: string): Promise<void> {
    this.done.push(`force ${path}`);
    await this.unmount(path);
  }

  mountAt(path: string): ReturnType<VolumeHost["mountAt"]> {
    const found = this.mounts.get(path);
    const { type = "", source = "", options = [], superOptions = [] } = found ?? {};
    return Promise.resolve(found && { type, source, options, superOptions });
  }

  async groupOf(path: string): Promise<number> {
    const { source = path } = this.mounts.get(path) ?? {};
    const same = [...this.mounts].filter(([, mount]) => mount.source === source).map(([target]) => target);
    return [path, ...same].flatMap((one) => this.groups.get(one)?.gid ?? [])[0] ?? 0;
  }

  async otherMounts(path: string): Promise<readonly string[]> {
    if (!this.mounts.has(path)) return [];
    const isOfIt = (source = ""): boolean => source === path || source.startsWith(`${path}/`);
    const direct = [...this.mounts].filter(([, { source }]) => isOfIt(source)).map(([target]) => target);
    const parts = direct.map((target) => this.otherMounts(target));
    return [...direct, ...(await Promise.all(parts)).flat()];
  }

  async run(command: readonly string[], { input }: { input?: string }): Promise<CommandResult> {
    this.done.push(`run ${command.join(" ")}${input === undefined ? "" : ` < ${input}`}`);
    return this.onRun(command, input);
  }

  async symlink(target: string, path: string): Promise<void> {
    this.done.push(`symlink ${path}`);
    this.modes.set(path, 0o777);
    this.kinds.set(path, "file");
    this.links.set(path, target);
  }

  async readLink(path: string): Promise<string | undefined> {
    return this.links.get(path);
  }

  private failIf(what: "mount" | "bind" | "unmount"): void {
    const fault = this.commandFaults.get(what);
    if (fault !== undefined) throw fault;
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

  /** Block devices that are kept open. */
  readonly locked = new Set<string>();

  /** Devices that a filesystem holds although it is not mounted any more. */
  readonly held = new Set<string>();

  async isDeviceHeld(path: string): Promise<boolean> {
    return this.held.has(path) || [...this.mounts.values()].some(({ source }) => source === path);
  }

  async lockDevice(path: string): Promise<void> {
    assert.equal(this.mounts.has(path), true, "what is locked is bound there");
    this.locked.add(path);
  }

  async unlockDevice(path: string): Promise<void> {
    this.locked.delete(path);
  }

  async realPath(path: string): Promise<string> {
    return path;
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
    if (this.kinds.get(path) === "blockDevice") this.kinds.set(path, "file");
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
      this.links.delete(entry);
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

  async removeEmptyTree(path: string): Promise<void> {
    const [mounted] = await this.mountsBelow(path);
    if (mounted !== undefined) throw new Error(`${mounted} is not removed: something is mounted there`);
    const below = [...this.modes.keys()].filter((entry) => entry === path || entry.startsWith(`${path}/`));
    const other = below.find((entry) => this.kinds.get(entry) !== "directory");
    if (other !== undefined) throw new Error(`${other} is not removed: not a directory`);
    if (below.length > 0) this.done.push(`removeEmptyTree ${path}`);
    for (const entry of below) for (const map of [this.modes, this.kinds]) map.delete(entry);
  }

  async list(path: string): Promise<readonly string[]> {
    const fault = this.readFaults.get(path);
    if (fault !== undefined) throw fault;
    const below = [...this.modes.keys()].filter((entry) => entry.startsWith(`${path}/`));
    return [...new Set(below.map((entry) => entry.slice(path.length + 1).split("/")[0] ?? ""))];
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

  changeGroup(path: string, request: Parameters<VolumeHost["changeGroup"]>[1]): Promise<void> {
    const { gid, onlyOnMismatch, isRemote = false } = request;
    this.done.push(`group ${path}${isRemote ? " by a child" : ""}`);
    this.groups.set(path, { gid, onlyOnMismatch });
    return Promise.resolve();
  }

  bindSubPath({ root, subPath, target }: { root: string; subPath: string; target: string }): Promise<void> {
    this.modes.set(target, 0o750);
    this.mounts.set(target, { type: "bind", source: `${root}/${subPath}` });
    return Promise.resolve();
  }

  /** What reading a file, or listing a directory, rejects with, by its path. */
  readonly readFaults = new Map<string, Error>();

  async readFile(path: string): Promise<string | undefined> {
    const fault = this.readFaults.get(path);
    if (fault !== undefined) throw fault;
    return this.files.get(path);
  }

  replaceFile(path: string, text: string): Promise<void> {
    this.done.push(`replaceFile ${path}`);
    this.readFaults.delete(path);
    this.modes.set(path, 0o600);
    this.kinds.set(path, "file");
    this.files.set(path, text);
    return Promise.resolve();
  }

  removeFile(path: string): Promise<void> {
    this.done.push(`removeFile ${path}`);
    for (const map of [this.modes, this.kinds, this.files, this.links]) map.delete(path);
    return Promise.resolve();
  }

  /** The texts that a written volume holds. */
  texts(directory: string): Record<string, string> {
    const files = this.contents.get(directory) ?? new Map<string, Written>();
    return Object.fromEntries([...files].map(([path, { bytes }]) => [path, Buffer.from(bytes).toString()]));
  }

  private mount(path: string, what: MountOf): void {
    assert.equal(this.mounts.has(path), false, "mounted twice");
    this.done.push(`mount ${path}`);
    this.mounts.set(path, what);
  }
}
