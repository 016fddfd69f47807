import type { CgroupDetails, CpuDetails, MemoryDetails } from "../../model/usage.ts";
import type { CgroupMount } from "../host/cgroups.ts";
import { fieldIn, numberIn, type ReadFile, readKernelFile } from "../host/kernel-file.ts";
import { DiskReaderV1, readDisksV2 } from "./disks.ts";
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
  private readonly disks: DiskReaderV1;

  constructor(
    mounts: readonly CgroupMount[],
    private readonly file: ReadFile = readKernelFile,
  ) {
    this.hierarchies = hierarchiesOf(mounts);
    this.disks = new DiskReaderV1(file);
  }

  /** Undefined if there is no such cgroup. */
  read(path: string): CgroupDetails | undefined {
    const { hierarchies, file } = this;
    if (hierarchies === undefined) return undefined;
    const at = (controller: string): string | undefined => directoryOf(hierarchies, controller, path);
    const isOld = hierarchies.version === 1;
    const cpu = isOld ? cpuV1(at, file) : cpuV2(at("cpu"), file);
    const memory = isOld ? memoryV1(at("memory"), file) : memoryV2(at("memory"), file);
    if (cpu === undefined && memory === undefined) return undefined;
    const processes = countProcesses(at("cpu"), at("pids"), { isRoot: path === "/", read: file });
    return {
      ...(cpu && { cpu }),
      ...(memory && { memory }),
      disks: isOld ? this.disks.read(at("blkio")) : readDisksV2(at("io"), file),
      ...(processes && { processes }),
      oomKills: oomKills(at("memory"), { isOld, read: file }),
    };
  }
}

type Directory = (controller: string) => string | undefined;

function cpuV1(at: Directory, read: ReadFile): CpuDetails | undefined {
  const [directory, accounting] = [at("cpu"), at("cpuacct")];
  const times = accounting && read(`${accounting}/cpuacct.stat`);
  if (directory === undefined || times === undefined) return undefined;
  const stat = read(`${directory}/cpu.stat`) ?? "";
  const quota = numberIn(`${directory}/cpu.cfs_quota_us`, read);
  return {
    userNanos: fieldIn(times, "user") * TICK_NANOS,
    systemNanos: fieldIn(times, "system") * TICK_NANOS,
    periods: fieldIn(stat, "nr_periods"),
    throttledPeriods: fieldIn(stat, "nr_throttled"),
    throttledNanos: fieldIn(stat, "throttled_time"),
    burstPeriods: fieldIn(stat, "nr_bursts"),
    burstNanos: fieldIn(stat, "burst_time"),
    shares: numberIn(`${directory}/cpu.shares`, read) ?? 0,
    period: numberIn(`${directory}/cpu.cfs_period_us`, read) ?? 0,
    ...(quota !== undefined && { quota }),
  };
}

function cpuV2(directory: string | undefined, read: ReadFile): CpuDetails | undefined {
  const stat = directory && read(`${directory}/cpu.stat`);
  if (directory === undefined || stat === undefined) return undefined;
  const [quota = "max", period = "0"] = (read(`${directory}/cpu.max`) ?? "").trim().split(" ");
  const weight = numberIn(`${directory}/cpu.weight`, read) ?? 0;
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

function memoryV1(directory: string | undefined, read: ReadFile): MemoryDetails | undefined {
  const stat = directory && read(`${directory}/memory.stat`);
  if (directory === undefined || stat === undefined) return undefined;
  const number = (name: string): number => numberIn(`${directory}/memory.${name}`, read) ?? 0;
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

function memoryV2(directory: string | undefined, read: ReadFile): MemoryDetails | undefined {
  const stat = directory && read(`${directory}/memory.stat`);
  if (directory === undefined || stat === undefined) return undefined;
  const number = (name: string): number => numberIn(`${directory}/memory.${name}`, read) ?? 0;
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

function oomKills(
  directory: string | undefined,
  { isOld, read }: { readonly isOld: boolean; readonly read: ReadFile },
): number {
  if (directory === undefined) return 0;
  const text = read(`${directory}/${isOld ? "memory.oom_control" : "memory.events"}`);
  return text === undefined ? 0 : fieldIn(text, "oom_kill");
}
