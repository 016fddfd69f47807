import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type CgroupMount, cgroupsIn } from "../host/cgroups.ts";
import { type Hierarchies, hierarchiesOf, readText } from "./hierarchy.ts";

/** What this kernel can limit; the same until the machine is started again. */
export interface KernelLimits {
  /** Undefined when no controller is mounted. */
  readonly cgroupVersion: 1 | 2 | undefined;
  /** The controllers that pods can be limited with. */
  readonly controllers: readonly string[];
  /** Sizes of huge pages in KiB. */
  readonly hugepageKib: readonly number[];
  /** Tasks that the kernel allows at once: the smaller of `pid_max` and `threads-max`. */
  readonly pidMax: number | undefined;
  /** Bytes of a page of memory. */
  readonly pageSize: number;
  /** Swap is counted and can be limited. */
  readonly canLimitSwap: boolean;
}

/** Reads them; `root` is `/`, or a directory that a test made. */
export function readKernelLimits(mounts: readonly CgroupMount[], root = "/"): KernelLimits {
  const hierarchies = hierarchiesOf(mounts);
  return {
    cgroupVersion: hierarchies?.version,
    controllers: hierarchies === undefined ? [] : controllersOf(hierarchies),
    hugepageKib: hugepageSizes(join(root, "sys/kernel/mm/hugepages")),
    pidMax: smallest(["pid_max", "threads-max"].map((name) => numberIn(join(root, "proc/sys/kernel", name)))),
    pageSize: pageSize(join(root, "proc/self/auxv")),
    canLimitSwap: hierarchies !== undefined && hasSwapLimit(hierarchies),
  };
}

/** The CPUs that are online, as the kernel lists them (`0-3`); undefined if it does not tell. */
export function onlineCpus(root = "/"): string | undefined {
  return readText(join(root, "sys/devices/system/cpu/online")) || undefined;
}

function controllersOf(hierarchies: Hierarchies): readonly string[] {
  if (hierarchies.version === 1) return hierarchies.mounts.flatMap(({ controllers }) => controllers);
  return (readText(join(hierarchies.root, "cgroup.controllers")) ?? "").split(" ").filter((name) => name !== "");
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

function smallest(numbers: readonly (number | undefined)[]): number | undefined {
  const known = numbers.filter((each) => each !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

const AT_PAGESZ = 6n;
const USUAL_PAGE = 4096;

/** The kernel hands it to each process in its auxiliary vector, as pairs of a type and a value. */
function pageSize(auxv: string): number {
  try {
    const bytes = readFileSync(auxv);
    for (let at = 0; at + 16 <= bytes.length; at += 16) {
      if (bytes.readBigUInt64LE(at) === AT_PAGESZ) return Number(bytes.readBigUInt64LE(at + 8));
    }
  } catch {
    // No such file outside of the machine's own /proc.
  }
  return USUAL_PAGE;
}

function numberIn(file: string): number | undefined {
  try {
    const value = Number(readFileSync(file, "latin1"));
    return Number.isSafeInteger(value) && value > 0 ? value : undefined;
  } catch {
    return undefined;
  }
}
