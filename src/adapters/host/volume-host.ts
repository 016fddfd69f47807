import { createHash } from "node:crypto";
import { lstat, realpath, rmdir, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { readIfExists } from "../../lib/atomic-file.ts";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
import { type DeviceMount, DeviceMounts } from "./device-mount.ts";
import { type TreeUsage, UsageWalk } from "./disk-usage.ts";
import { changeGroup, type GroupChange, type GroupOptions } from "./group.ts";
import { hostError } from "./host-error.ts";
import { type MountEntry, mountsWithin } from "./mount-table.ts";
import type { MountRequest } from "./mounts.ts";
import { PodHost, type PodHostDeps } from "./pod-host.ts";
import type { ProjectQuotas } from "./project-quotas.ts";
import { bindSubPath, type SubPathRequest } from "./sub-path.ts";
import { SystemCalls } from "./system-calls.ts";
import { chooseTreeAccess, type TreeAccess } from "./tree-access.ts";
import { type WriteRequest, writeVolume } from "./written-volume.ts";

/** What volumes need of the machine beyond what pods' files do; `LinuxHost` has it. */
export interface VolumeHostDeps extends PodHostDeps {
  mount(request: MountRequest): Promise<void>;
  removeTree(path: string, options?: { isOwn?: boolean }): Promise<void>;
  mountsNear(path: string): readonly MountEntry[];
}

/** Volumes on this machine: `VolumeHost` of src/volumes. */
export class LinuxVolumeHost extends PodHost {
  private access: Promise<TreeAccess> | undefined;
  private devices: DeviceMounts | undefined;
  /** What was written to which directory last, as a hash, so that a change is seen without reading it back. */
  private readonly written = new Map<string, string>();

  constructor(
    private readonly machine: VolumeHostDeps,
    private readonly clock: Clock,
    private readonly options: { readonly quotas?: ProjectQuotas } = {},
  ) {
    super(machine);
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
    this.devices ??= new DeviceMounts(this.clock);
    return this.devices.mount(request, options);
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

  async changeGroup(path: string, request: GroupChange & GroupOptions): Promise<void> {
    await changeGroup({ access: await this.treeAccess() }, path, request);
  }

  /** Removes a directory that is empty; one that is not there is success, one that is not empty is a failure. */
  async removeDir(path: string): Promise<void> {
    try {
      await rmdir(path);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw hostError(`remove ${path}`, error);
    }
  }

  /** The text of a small file of the agent's own; undefined if it does not exist. */
  readFile(path: string): Promise<string | undefined> {
    return readIfExists(path);
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

function digestOf({ files, gid }: WriteRequest): string {
  const hash = createHash("sha256").update(`${gid ?? ""}`);
  // Each part with its length, so that no two different volumes make one text.
  for (const [path, { bytes, mode, uid }] of files) {
    hash.update(`\n${path.length} ${path} ${mode} ${uid ?? ""} ${bytes.length}\n`).update(bytes);
  }
  return hash.digest("base64");
}
