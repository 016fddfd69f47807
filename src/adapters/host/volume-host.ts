import { realpath, rmdir, statfs } from "node:fs/promises";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
import { type TreeUsage, UsageWalk } from "./disk-usage.ts";
import { changeGroup, type GroupChange, type GroupOptions } from "./group.ts";
import { hostError } from "./host-error.ts";
import { type MountEntry, mountsWithin } from "./mount-table.ts";
import type { MountRequest } from "./mounts.ts";
import { PodHost, type PodHostDeps } from "./pod-host.ts";
import { bindSubPath, type SubPathRequest } from "./sub-path.ts";
import { SystemCalls } from "./system-calls.ts";
import { chooseTreeAccess, type TreeAccess } from "./tree-access.ts";
import { type WriteRequest, writeVolume } from "./written-volume.ts";

/** What volumes need of the machine beyond what pods' files do; `LinuxHost` has it. */
export interface VolumeHostDeps extends PodHostDeps {
  mount(request: MountRequest): Promise<void>;
  mountTable(): readonly MountEntry[];
}

/** Volumes on this machine: `VolumeHost` of src/volumes. */
export class LinuxVolumeHost extends PodHost {
  private access: Promise<TreeAccess> | undefined;

  constructor(
    private readonly machine: VolumeHostDeps,
    private readonly clock: Clock,
  ) {
    super(machine);
  }

  override mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void> {
    return this.machine.mount({ kind: "tmpfs", target: path, noSwap: true, ...options });
  }

  mountHugePages(path: string, options: { pageSizeBytes: number; mode: number }): Promise<void> {
    return this.machine.mount({ kind: "hugetlbfs", target: path, ...options });
  }

  bindMount(source: string, target: string): Promise<void> {
    return this.machine.mount({ kind: "bind", source, target });
  }

  /** Everything mounted at or below a path of the agent's own, outermost first. */
  async mountsBelow(path: string): Promise<readonly string[]> {
    const real = await realpath(path).catch(() => path);
    return mountsWithin(this.machine.mountTable(), real).map(({ target }) => target);
  }

  writeFiles(directory: string, request: WriteRequest): Promise<boolean> {
    return writeVolume({ removeTree: (path) => this.machine.removeTree(path) }, directory, request);
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

  /** Begins to measure a tree; see `UsageWalk`. */
  async measure(path: string): Promise<UsageWalk> {
    return new UsageWalk({ access: await this.treeAccess(), clock: this.clock }, path);
  }

  /** What a filesystem of its own (a tmpfs) holds, without looking at its files. */
  async filesystemUsage(path: string): Promise<TreeUsage> {
    const { blocks, bfree, bsize, files, ffree } = await statfs(path);
    return { bytes: (blocks - bfree) * bsize, inodes: files - ffree };
  }

  private treeAccess(): Promise<TreeAccess> {
    this.access ??= chooseTreeAccess();
    return this.access;
  }
}
