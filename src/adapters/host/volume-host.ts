import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { lstat, readdir, realpath, rmdir, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
import { DeviceLocks } from "./device-locks.ts";
import { type DeviceMount, DeviceMounts } from "./device-mount.ts";
import { type TreeUsage, UsageWalk } from "./disk-usage.ts";
import { exec } from "./exec.ts";
import { changeGroup, type GroupChange, type GroupOptions } from "./group.ts";
import { HostError, hostError } from "./host-error.ts";
import { type CommandMount, MountCommands } from "./mount-commands.ts";
import { type MountEntry, mountsWithin, type OtherMounts, otherMountsOf } from "./mount-table.ts";
import { type MountRequest, mountsAt } from "./mounts.ts";
import { readOwnFile } from "./own-file.ts";
import { PodHost, type PodHostDeps } from "./pod-host.ts";
import type { ProjectQuotas } from "./project-quotas.ts";
import { changeGroupInChild } from "./remote-group.ts";
import { bindSubPath, type SubPathRequest } from "./sub-path.ts";
import { SystemCalls } from "./system-calls.ts";
import { chooseTreeAccess, type TreeAccess } from "./tree-access.ts";
import { type WriteRequest, writeVolume } from "./written-volume.ts";

/** What volumes need of the machine beyond what pods' files do; `LinuxHost` has it. */
export interface VolumeHostDeps extends PodHostDeps {
  mount(request: MountRequest): Promise<void>;
  removeTree(path: string, options?: { isOwn?: boolean }): Promise<void>;
  mountsNear(path: string): readonly MountEntry[];
  mountTable(): readonly MountEntry[];
}

/** What is mounted at a path. */
export interface MountedAt {
  /** `server:/export`, `/dev/sdb`. */
  readonly source: string;
  readonly type: string;
  /** Flags of the mount: `ro`, `nosuid` … */
  readonly options: readonly string[];
  /** Flags of the filesystem: `seclabel` if its files may have labels of SELinux … */
  readonly superOptions: readonly string[];
}

/** How a command of others ended. */
export interface CommandResult {
  /** Undefined when a signal ended it. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Volumes on this machine: `VolumeHost` of src/volumes. */
export class LinuxVolumeHost extends PodHost {
  private access: Promise<TreeAccess> | undefined;
  private readonly devices: DeviceMounts;
  private readonly commands: MountCommands;
  private readonly locks: DeviceLocks;
  /** What was written to which directory last, as a hash, so that a change is seen without reading it back. */
  private readonly written = new Map<string, string>();

  constructor(
    private readonly machine: VolumeHostDeps,
    private readonly clock: Clock,
    private readonly options: { readonly quotas?: ProjectQuotas } = {},
  ) {
    super(machine);
    this.commands = new MountCommands({
      run: (command, options) => exec(clock, command, options),
      layersAt: (path) => mountsAt(path).length,
      isElsewhere: (path) => {
        const target = mountsAt(path).at(-1)?.target ?? path;
        return otherMountsOf(machine.mountTable(), target, { isAny: true }).length > 0;
      },
      flagsAt: (path) => (mountsAt(path).at(-1)?.options ?? []).filter((flag) => KEPT_FLAGS.has(flag)),
    });
    this.devices = new DeviceMounts(clock, this.commands);
    this.locks = new DeviceLocks((command, options) => exec(clock, command, options));
  }

  override mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void> {
    this.written.delete(path);
    return this.machine.mount({ kind: "tmpfs", target: path, noSwap: true, ...options });
  }

  override unmount(path: string): Promise<void> {
    this.written.delete(path);
    return super.unmount(path);
  }

  override removeTree(path: string): Promise<void> {
    this.written.delete(path);
    return super.removeTree(path);
  }

  mountHugePages(path: string, options: { pageSizeBytes: number; mode: number }): Promise<void> {
    return this.machine.mount({ kind: "hugetlbfs", target: path, ...options });
  }

  /** See `DeviceMounts`. */
  mountDevice(request: DeviceMount, options: Abortable): Promise<void> {
    return this.devices.mount(request, options);
  }

  /** See `MountCommands`. */
  mountByCommand(request: CommandMount, options: Abortable): Promise<void> {
    return this.commands.mount(request, options);
  }

  /** See `MountCommands`. */
  bindByCommand(request: Omit<CommandMount, "type">, options: Abortable): Promise<void> {
    return this.commands.bind(request, options);
  }

  /** See `MountCommands`. */
  unmountByCommand(path: string, options: Abortable & { mayForce?: boolean }): Promise<void> {
    this.written.delete(path);
    return this.commands.unmount(path, options);
  }

  /** See `MountCommands`. */
  unmountByForce(path: string, options: Abortable): Promise<void> {
    return this.commands.force(path, options);
  }

  /** See `DeviceLocks`. */
  lockDevice(path: string, options: Abortable): Promise<void> {
    return this.locks.lock(path, options);
  }

  unlockDevice(path: string, options: Abortable): Promise<void> {
    return this.locks.unlock(path, options);
  }

  /** Of a path of the agent's own. */
  realPath(path: string): Promise<string> {
    return realpath(path);
  }

  /** Runs a command of others to its end, or to its time limit; what it started may outlive it. */
  async run(
    command: readonly [string, ...string[]],
    { signal, timeoutMs, input }: Abortable & { timeoutMs: number; input?: string },
  ): Promise<CommandResult> {
    const limits = { signal, timeoutMs, isContained: true, mayLeaveChildren: true };
    return exec(this.clock, command, { ...limits, ...(input !== undefined && { input }) });
  }

  /** Asked by a child process: the device may hang. One that is not there is held by nobody. */
  async isDeviceHeld(path: string, options: Abortable): Promise<boolean> {
    const script = `try { require("fs").openSync(process.argv[1], ${constants.O_RDONLY | constants.O_EXCL}) } catch (e) { console.log(e.code) }`;
    const { stdout, stderr, code } = await exec(this.clock, [process.execPath, "-e", script, path], {
      ...options,
      timeoutMs: HELD_MS,
    });
    const answer = stdout.trim();
    if (code !== 0) throw new HostError("Unknown", `open ${path}: ${stderr.trim()}`);
    if (answer === "" || ["ENOENT", "ENXIO", "ENODEV"].includes(answer)) return false;
    if (answer === "EBUSY") return true;
    throw new HostError("Unknown", `open ${path}: ${answer}`);
  }

  async mountAt(path: string): Promise<MountedAt | undefined> {
    return mountsAt(path).at(-1);
  }

  /** See `otherMountsOf`. */
  async otherMounts(path: string, options: OtherMounts = {}): Promise<readonly string[]> {
    return otherMountsOf(this.machine.mountTable(), await realDirectory(path), options);
  }

  bindMount(source: string, target: string): Promise<void> {
    return this.machine.mount({ kind: "bind", source, target });
  }

  /** Another filesystem than above it is a mount; else the kernel is asked, and where it cannot tell the mount table. */
  override async isMountPoint(path: string): Promise<boolean> {
    const known = await (await SystemCalls.load())?.isMountRoot(path);
    if (known !== undefined) return known;
    const [here, above] = await Promise.all(
      [lstat(path), lstat(dirname(path))].map((stat) => stat.catch(() => undefined)),
    );
    if (here === undefined || above === undefined) return false;
    return here.dev !== above.dev || this.machine.isMountPoint(path);
  }

  /** Everything mounted at or below a path of the agent's own, outermost first. */
  async mountsBelow(path: string): Promise<readonly string[]> {
    const real = await realpath(path).catch(() => path);
    return mountsWithin(this.machine.mountsNear(real), real).map(({ target }) => target);
  }

  /** See `writeVolume`. What this agent has not written itself is compared with what is there. */
  async writeFiles(directory: string, request: WriteRequest): Promise<boolean> {
    const known = this.written.get(directory);
    const digest = digestOf(request);
    if (known === digest) return false;
    const removeTree = (path: string): Promise<void> => this.machine.removeTree(path, { isOwn: true });
    // Unknown until it is done: after a failure it is compared again.
    this.written.delete(directory);
    const changed = await writeVolume({ removeTree }, directory, { ...request, isOther: known !== undefined });
    this.written.set(directory, digest);
    return changed;
  }

  async bindSubPath(request: SubPathRequest): Promise<void> {
    const calls = await SystemCalls.load();
    const bind = (source: string, target: string): Promise<void> => this.bindMount(source, target);
    await bindSubPath({ calls, bind, unmount: (target) => this.machine.unmount(target) }, request);
  }

  /** The group that a path belongs to. */
  async groupOf(path: string): Promise<number> {
    try {
      return (await lstat(path)).gid;
    } catch (error) {
      throw hostError(`look at ${path}`, error);
    }
  }

  /** See `changeGroup`; what may hang is walked by a child process. */
  async changeGroup(
    path: string,
    request: GroupChange & GroupOptions & { readonly isRemote?: boolean },
  ): Promise<void> {
    const { isRemote = false, ...change } = request;
    if (isRemote) return changeGroupInChild(this.clock, path, change);
    await changeGroup({ access: await this.treeAccess() }, path, change);
  }

  /** Removes a directory that is empty; one that is not there is success, one that is not empty is a failure. */
  async removeDir(path: string): Promise<void> {
    try {
      await rmdir(path);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw hostError(`remove ${path}`, error);
    }
  }

  /**
   * Removes directories that hold nothing but directories. Whatever else is there may be somebody's data: it is neither
   * removed nor entered, and neither is a mount.
   */
  async removeEmptyTree(path: string): Promise<void> {
    try {
      await rmdir(path);
    } catch (error) {
      const code = errnoOf(error);
      if (code === "ENOENT") return;
      if (code === "EBUSY") throw new HostError("Mounted", `remove ${path}: something is mounted there`);
      if (code === "ENOTDIR") throw new HostError("Busy", `remove ${path}: not a directory, it may be somebody's data`);
      if (code !== "ENOTEMPTY" && code !== "EEXIST") throw hostError(`remove ${path}`, error);
      for (const name of await readdir(path)) await this.removeEmptyTree(join(path, name));
      await rmdir(path);
    }
  }

  /** See `readOwnFile`. */
  readFile(path: string): Promise<string | undefined> {
    return readOwnFile(path);
  }

  /** Has the filesystem count what will be in an empty directory, where it can; see `ProjectQuotas`. Never rejects. */
  async countUsage(path: string): Promise<void> {
    await this.options.quotas?.begin(path);
  }

  /** Ends the counting of a directory that was removed. Never rejects. */
  async stopCounting(path: string): Promise<void> {
    await this.options.quotas?.end(path);
  }

  /** What the filesystem has counted, at once; undefined where it does not count. */
  async countedUsage(path: string): Promise<TreeUsage | undefined> {
    return this.options.quotas?.usage(path);
  }

  /** Begins to measure a tree; see `UsageWalk`. */
  async measure(path: string): Promise<UsageWalk> {
    return new UsageWalk({ access: await this.treeAccess(), clock: this.clock }, path);
  }

  /** What a filesystem of its own (a tmpfs) holds, without looking at its files; nothing while it is not mounted. */
  async filesystemUsage(path: string): Promise<TreeUsage> {
    if (!(await this.isMountPoint(path))) return { bytes: 0, inodes: 0 };
    const { blocks, bfree, bsize, files, ffree } = await statfs(path);
    return { bytes: (blocks - bfree) * bsize, inodes: files - ffree };
  }

  private treeAccess(): Promise<TreeAccess> {
    this.access ??= chooseTreeAccess();
    return this.access;
  }
}

/** A device that cannot be opened for this long, in milliseconds, hangs. */
const HELD_MS = 10_000;

/** Of a bind mount that is remounted. */
const KEPT_FLAGS = new Set(["ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "relatime"]);

/** The path with links on the way to its last part followed: what is mounted there is never looked at. */
async function realDirectory(path: string): Promise<string> {
  const above = await realpath(dirname(path)).catch(() => dirname(path));
  return join(above, basename(path));
}

function digestOf({ files, gid }: WriteRequest): string {
  const hash = createHash("sha256").update(`${gid ?? ""}`);
  // Each part with its length, so that no two different volumes make one text.
  for (const [path, { bytes, mode, uid }] of files) {
    hash.update(`\n${path.length} ${path} ${mode} ${uid ?? ""} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest("base64");
}
