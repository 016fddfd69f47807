import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { messageOf } from "../../lib/errors.ts";
import type { CgroupValues } from "../../model/pod-cgroup-values.ts";
import { type CgroupMount, cgroupsIn } from "../host/cgroups.ts";
import { type Hierarchies, hierarchiesOf, levelsOf, makeCgroup } from "./hierarchy.ts";
import { type BusCall, SystemdSlices } from "./systemd-slices.ts";
import { directoryOf, readUnreclaimable, readUsage, readValues, writeValues } from "./values.ts";

/** The machine's cgroups, version 1 or 2, of files alone or (with a bus) of systemd's slices. */
export class CgroupTree {
  private readonly hierarchies: Hierarchies | undefined;
  private readonly slices: SystemdSlices | undefined;
  /** Slices that systemd was told of: each call costs a process. */
  private readonly started = new Set<string>();

  constructor(mounts: readonly CgroupMount[], options: { systemd?: BusCall } = {}) {
    this.hierarchies = hierarchiesOf(mounts);
    const { systemd } = options;
    this.slices = systemd && this.hierarchies && new SystemdSlices(systemd, this.hierarchies.version);
  }

  /** Undefined when no hierarchy with controllers is mounted: then there is nothing to limit with. */
  get version(): 1 | 2 | undefined {
    return this.hierarchies?.version;
  }

  /** Makes the cgroup where it is missing, with those above it. Safe to repeat. Rejects if the kernel refuses. */
  async ensure(path: string): Promise<void> {
    if (this.hierarchies === undefined) return;
    for (const level of this.slices === undefined ? [] : levelsOf(path)) {
      if (!level.endsWith(".slice") || (this.started.has(level) && this.exists(level))) continue;
      await this.slices?.start(level);
      this.started.add(level);
    }
    makeCgroup(this.hierarchies, path);
  }

  /** Sets limits; answers what could not be set, one line each. */
  async set(path: string, values: CgroupValues): Promise<readonly string[]> {
    if (this.hierarchies === undefined) return [];
    const problems: string[] = [];
    if (path.endsWith(".slice")) {
      await this.slices
        ?.set(path, values)
        .catch((error: unknown) => void problems.push(`systemd: ${messageOf(error)}`));
    }
    return [...problems, ...writeValues(this.hierarchies, path, values)];
  }

  /** Whether the cgroup is there, as far as its main controllers tell. */
  exists(path: string): boolean {
    const directory = this.hierarchies && directoryOf(this.hierarchies, "cpu", path);
    return directory === undefined || existsSync(directory);
  }

  /** What is set now; undefined when there is no such cgroup. */
  read(path: string): CgroupValues | undefined {
    return this.hierarchies && readValues(this.hierarchies, path);
  }

  /** Bytes of memory used by the cgroup right below `path` that has the container's id in its name. */
  memoryUsage(path: string, containerId: string): number | undefined {
    return this.hierarchies && readUsage(this.hierarchies, path, containerId);
  }

  /** Bytes of memory used in the cgroup that the kernel cannot reclaim. */
  unreclaimable(path: string): number | undefined {
    return this.hierarchies && readUnreclaimable(this.hierarchies, path);
  }

  /** Names of the cgroups right below one, in any hierarchy. */
  childrenOf(path: string): readonly string[] {
    const { hierarchies } = this;
    if (hierarchies === undefined) return [];
    const roots = hierarchies.version === 2 ? [hierarchies.root] : hierarchies.mounts.map((each) => each.mountpoint);
    const found = roots.flatMap((root) => cgroupsIn(join(root, path)).map((child) => basename(child)));
    return [...new Set(found)];
  }

  /** Before the directories go: a slice that systemd still knows comes back. */
  async forget(path: string): Promise<void> {
    this.started.delete(path);
    if (path.endsWith(".slice")) await this.slices?.stop(path);
  }
}
