import { join } from "node:path";
import type { CgroupDetails, CpuDetails, MemoryDetails } from "../../model/usage.ts";
import type { CgroupMount } from "../host/cgroups.ts";
import { fieldIn, numberIn, readKernelFile } from "../host/kernel-file.ts";
import { readDisksV1, readDisksV2 } from "./disks.ts";
import { type Hierarchies, hierarchiesOf } from "./hierarchy.ts";
import { countProcesses } from "./process-counts.ts";
import { directoryOf } from "./values.ts";

/** A limit above this is none: the kernel writes a number near 2^63 in version 1. */
const UNLIMITED = 2 ** 62;
/** Nanoseconds of a tick of cpuacct.stat; the kernel shows 100 a second to programs on every machine. */
const TICK_NANOS = 1e7;

/** Reads what cAdvisor shows of a cgroup beside its usage, version 1 or 2. Never throws. */
export class CgroupDetailsReader {
  private readonly hierarchies: Hierarchies | undefined;

  constructor(mounts: readonly CgroupMount[]) {
    this.hierarchies = hierarchiesOf(mounts);
  }

  /** Undefined if there is no such cgroup. */
  read(path: string): CgroupDetails | undefined {
    const { hierarchies } = this;
    if (hierarchies === undefined) return undefined;
    const at = (controller: string): string | undefined => directoryOf(hierarchies, controller, path);
    const isOld = hierarchies.version === 1;
    const [cpu, memory] = isOld ? [cpuV1(at), memoryV1(at("memory"))] : [cpuV2(at("cpu")), memoryV2(at("memory"))];
    if (cpu === undefined && memory === undefined) return undefined;
    const processes = countProcesses(at("cpu"), at("pids"), { isRoot: path === "/" });
    return {
      ...(cpu && { cpu }),
      ...(memory && { memory }),
      disks: isOld ? readDisksV1(at("blkio")) : readDisksV2(at("io")),
      ...(processes && { processes }),
      oomKills: oomKills(at("memory"), isOld),
    };
  }
}

type Directory = (controller: string) => string | undefined;

function cpuV1(at: Directory): CpuDetails | undefined {
  const [directory, accounting] = [at("cpu"), at("cpuacct")];
  const times = accounting && readKernelFile(join(accounting, "cpuacct.stat"));
  if (directory === undefined || times === undefined) return undefined;
  const stat = readKernelFile(join(directory, "cpu.stat")) ?? "";
  const quota = numberIn(join(directory, "cpu.cfs_quota_us"));
  return {
    userNanos: fieldIn(times, "user") * TICK_NANOS,
    systemNanos: fieldIn(times, "system") * TICK_NANOS,
    periods: fieldIn(stat, "nr_periods"),
    throttledPeriods: fieldIn(stat, "nr_throttled"),
    throttledNanos: fieldIn(stat, "throttled_time"),
    burstPeriods: fieldIn(stat, "nr_bursts"),
    burstNanos: fieldIn(stat, "burst_time"),
    shares: numberIn(join(directory, "cpu.shares")) ?? 0,
    period: numberIn(join(directory, "cpu.cfs_period_us")) ?? 0,
    ...(quota !== undefined && { quota }),
  };
}

function cpuV2(directory: string | undefined): CpuDetails | undefined {
  const stat = directory && readKernelFile(join(directory, "cpu.stat"));
  if (directory === undefined || stat === undefined) return undefined;
  const [quota = "max", period = "0"] = (readKernelFile(join(directory, "cpu.max")) ?? "").trim().split(" ");
  const weight = numberIn(join(directory, "cpu.weight")) ?? 0;
  return {
    userNanos: fieldIn(stat, "user_usec") * 1000,
    systemNanos: fieldIn(stat, "system_usec") * 1000,
    periods: fieldIn(stat, "nr_periods"),
    throttledPeriods: fieldIn(stat, "nr_throttled"),
    throttledNanos: fieldIn(stat, "throttled_usec") * 1000,
    burstPeriods: fieldIn(stat, "nr_bursts"),
    burstNanos: fieldIn(stat, "burst_usec") * 1000,
    // The inverse of how runtimes make a weight from shares, as cAdvisor has it.
    shares: weight === 0 ? 0 : 2 + Math.trunc(((weight - 1) * 262_142) / 9999),
    period: Number(period),
    ...(/^\d+$/.test(quota) && { quota: Number(quota) }),
  };
}

function memoryV1(directory: string | undefined): MemoryDetails | undefined {
  const stat = directory && readKernelFile(join(directory, "memory.stat"));
  if (directory === undefined || stat === undefined) return undefined;
  const number = (name: string): number => numberIn(join(directory, `memory.${name}`)) ?? 0;
  return {
    cache: fieldIn(stat, "total_cache"),
    mappedFile: fieldIn(stat, "total_mapped_file"),
    activeFile: fieldIn(stat, "total_active_file"),
    inactiveFile: fieldIn(stat, "total_inactive_file"),
    kernel: number("kmem.usage_in_bytes"),
    peak: number("max_usage_in_bytes"),
    failures: number("failcnt"),
    limit: limited(number("limit_in_bytes")),
    swapLimit: limited(number("memsw.limit_in_bytes")),
    reservation: limited(number("soft_limit_in_bytes")),
  };
}

function memoryV2(directory: string | undefined): MemoryDetails | undefined {
  const stat = directory && readKernelFile(join(directory, "memory.stat"));
  if (directory === undefined || stat === undefined) return undefined;
  const number = (name: string): number => numberIn(join(directory, `memory.${name}`)) ?? 0;
  return {
    cache: fieldIn(stat, "file"),
    mappedFile: fieldIn(stat, "file_mapped"),
    activeFile: fieldIn(stat, "active_file"),
    inactiveFile: fieldIn(stat, "inactive_file"),
    // cAdvisor has none in version 2.
    kernel: 0,
    peak: number("peak"),
    failures: 0,
    limit: limited(number("max")),
    swapLimit: limited(number("swap.max")),
    reservation: limited(number("min")),
  };
}

function limited(bytes: number): number {
  return bytes > UNLIMITED ? 0 : bytes;
}

function oomKills(directory: string | undefined, isOld: boolean): number {
  if (directory === undefined) return 0;
  const text = readKernelFile(join(directory, isOld ? "memory.oom_control" : "memory.events"));
  return text === undefined ? 0 : fieldIn(text, "oom_kill");
}
