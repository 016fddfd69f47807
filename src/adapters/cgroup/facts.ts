import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type CgroupMount, cgroupsIn } from "../host/cgroups.ts";
import { type Hierarchies, hierarchiesOf } from "./hierarchy.ts";

/** What this kernel can limit; the same until the machine is started again. */
export interface KernelLimits {
  /** Undefined when no controller is mounted. */
  readonly cgroupVersion: 1 | 2 | undefined;
  /** Sizes of huge pages in KiB. */
  readonly hugepageKib: readonly number[];
  /** Process ids that the kernel gives out. */
  readonly pidMax: number | undefined;
  /** Swap is counted and can be limited. */
  readonly canLimitSwap: boolean;
}

/** Reads them; `root` is `/`, or a directory that a test made. */
export function readKernelLimits(mounts: readonly CgroupMount[], root = "/"): KernelLimits {
  const hierarchies = hierarchiesOf(mounts);
  return {
    cgroupVersion: hierarchies?.version,
    hugepageKib: hugepageSizes(join(root, "sys/kernel/mm/hugepages")),
    pidMax: numberIn(join(root, "proc/sys/kernel/pid_max")),
    canLimitSwap: hierarchies !== undefined && hasSwapLimit(hierarchies),
  };
}

/** A kernel without swap, or told not to count it, does not have these files, and a runtime that writes them fails. */
function hasSwapLimit(hierarchies: Hierarchies): boolean {
  if (hierarchies.version === 1) {
    return hierarchies.mounts.some(
      ({ controllers, mountpoint }) =>
        controllers.includes("memory") && existsSync(join(mountpoint, "memory.memsw.limit_in_bytes")),
    );
  }
  // The topmost cgroup has no limits. Where none below it counts memory yet, nothing tells, and nearly all can.
  const counting = cgroupsIn(hierarchies.root).filter((path) => existsSync(join(path, "memory.max")));
  return counting.length === 0 || counting.some((path) => existsSync(join(path, "memory.swap.max")));
}

function hugepageSizes(directory: string): number[] {
  let names: string[] = [];
  try {
    names = readdirSync(directory);
  } catch {
    // A kernel without huge pages.
  }
  const sizes = names.map((name) => Number(/^hugepages-(\d+)kB$/.exec(name)?.[1] ?? 0));
  return sizes.filter((size) => size > 0).sort((a, b) => a - b);
}

function numberIn(file: string): number | undefined {
  try {
    const value = Number(readFileSync(file, "latin1"));
    return Number.isSafeInteger(value) && value > 0 ? value : undefined;
  } catch {
    return undefined;
  }
}
