import { statSync } from "node:fs";
import { join } from "node:path";
import type { CgroupUsage, CpuUsage, MemoryUsage } from "../../model/usage.ts";
import { type CgroupMount, cgroupsIn } from "../host/cgroups.ts";
import { fieldIn, numberIn, type ReadFile, readKernelFile } from "../host/kernel-file.ts";
import { readPressureStall } from "../host/pressure-stall.ts";
import { pidsBelow } from "./end-processes.ts";
import { type Hierarchies, hierarchiesOf } from "./hierarchy.ts";
import { directoryOf } from "./values.ts";

/** A limit of version 1 above this is none: the kernel writes a number near 2^63. */
const UNLIMITED_V1 = 2 ** 62;

/** Reads the usage of cgroups, version 1 or 2. A cgroup that does not exist has no usage. Never throws. */
export class CgroupUsageReader {
  private readonly hierarchies: Hierarchies | undefined;

  constructor(
    mounts: readonly CgroupMount[],
    private readonly file: ReadFile = readKernelFile,
  ) {
    this.hierarchies = hierarchiesOf(mounts);
  }

  /** All that is counted for a cgroup. */
  read(path: string): CgroupUsage {
    if (this.hierarchies === undefined) return {};
    const [cpu, memory] = [this.cpu(path), this.memory(path)];
    const pids = this.number("pids", path, "pids.current");
    const processes = this.text("memory", path, "cgroup.procs");
    const io = this.stall("io", path);
    return {
      ...(cpu && { cpu }),
      ...(memory && { memory }),
      ...(pids !== undefined && { pids }),
      ...(processes !== undefined && { processes: linesIn(processes) }),
      ...(io && { io: { psi: io } }),
    };
  }

  /** Memory alone: for those that look often. */
  memory(path: string): MemoryUsage | undefined {
    if (this.hierarchies === undefined) return undefined;
    const directory = directoryOf(this.hierarchies, "memory", path);
    if (directory === undefined) return undefined;
    return this.hierarchies.version === 1 ? memoryV1(directory, this.file) : memoryV2(directory, this.file);
  }

  /** The cgroup right below `path` that has the id of a container in its name; runtimes differ in the rest of it. */
  childOf(path: string, id: string): string | undefined {
    const directory = this.hierarchies && directoryOf(this.hierarchies, "memory", path);
    if (directory === undefined || id === "") return undefined;
    try {
      const found = cgroupsIn(directory).find((child) => child.includes(id, directory.length));
      return found && join(path, found.slice(directory.length));
    } catch {
      // Removed meanwhile.
      return undefined;
    }
  }

  /** A process of the cgroup itself; undefined if there is none. */
  processIn(path: string): number | undefined {
    const pid = this.number("memory", path, "cgroup.procs");
    return pid === 0 ? undefined : pid;
  }

  /** The processes of the cgroup and of those below it. */
  processesBelow(path: string): readonly number[] {
    const directory = this.hierarchies && directoryOf(this.hierarchies, "memory", path);
    return directory === undefined ? [] : pidsBelow(directory);
  }

  /** When the cgroup was created, as far as its directory tells, in wall-clock milliseconds; undefined if there is none. */
  createdAt(path: string): number | undefined {
    const directory = this.hierarchies && directoryOf(this.hierarchies, "memory", path);
    try {
      const found = directory === undefined ? undefined : statSync(directory, { throwIfNoEntry: false });
      return found && Math.min(found.mtimeMs, found.ctimeMs);
    } catch {
      return undefined;
    }
  }

  private cpu(path: string): CpuUsage | undefined {
    const usage = this.cpuNanos(path);
    const psi = this.stall("cpu", path);
    return usage === undefined ? undefined : { usageNanos: usage, ...(psi && { psi }) };
  }

  private cpuNanos(path: string): number | undefined {
    if (this.hierarchies?.version === 1) return this.number("cpuacct", path, "cpuacct.usage");
    const text = this.text("cpu", path, "cpu.stat");
    return text === undefined ? undefined : fieldIn(text, "usage_usec") * 1000;
  }

  /** Only version 2 has them. */
  private stall(resource: "cpu" | "io", path: string): ReturnType<typeof readPressureStall> {
    if (this.hierarchies?.version !== 2) return undefined;
    return readPressureStall(join(this.hierarchies.root, path, `${resource}.pressure`));
  }

  private text(controller: string, path: string, file: string): string | undefined {
    const directory = this.hierarchies && directoryOf(this.hierarchies, controller, path);
    return directory === undefined ? undefined : this.file(`${directory}/${file}`);
  }

  private number(controller: string, path: string, file: string): number | undefined {
    const directory = this.hierarchies && directoryOf(this.hierarchies, controller, path);
    return directory === undefined ? undefined : numberIn(`${directory}/${file}`, this.file);
  }
}

function linesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}

function memoryV1(directory: string, read: ReadFile): MemoryUsage | undefined {
  const usage = numberIn(`${directory}/memory.usage_in_bytes`, read);
  const stat = read(`${directory}/memory.stat`);
  if (usage === undefined || stat === undefined) return undefined;
  const limit = numberIn(`${directory}/memory.limit_in_bytes`, read) ?? UNLIMITED_V1;
  const swapLimit = numberIn(`${directory}/memory.memsw.limit_in_bytes`, read) ?? UNLIMITED_V1;
  return {
    usage,
    workingSet: Math.max(0, usage - fieldIn(stat, "total_inactive_file")),
    rss: fieldIn(stat, "total_rss"),
    pageFaults: fieldIn(stat, "total_pgfault"),
    majorPageFaults: fieldIn(stat, "total_pgmajfault"),
    own: { pageFaults: fieldIn(stat, "pgfault"), majorPageFaults: fieldIn(stat, "pgmajfault") },
    swap: fieldIn(stat, "total_swap"),
    ...(limit < UNLIMITED_V1 && { limit }),
    // Of memory and swap together, as the kubelet shows it.
    ...(swapLimit < UNLIMITED_V1 && { swapLimit }),
  };
}

function memoryV2(directory: string, read: ReadFile): MemoryUsage | undefined {
  const stat = read(`${directory}/memory.stat`);
  if (stat === undefined) return undefined;
  // The topmost cgroup has no count of its own.
  const usage = numberIn(`${directory}/memory.current`, read) ?? fieldIn(stat, "anon") + fieldIn(stat, "file");
  const limit = numberIn(`${directory}/memory.max`, read);
  const swapLimit = numberIn(`${directory}/memory.swap.max`, read);
  const psi = readPressureStall(join(directory, "memory.pressure"));
  return {
    usage,
    workingSet: Math.max(0, usage - fieldIn(stat, "inactive_file")),
    rss: fieldIn(stat, "anon"),
    pageFaults: fieldIn(stat, "pgfault"),
    majorPageFaults: fieldIn(stat, "pgmajfault"),
    swap: numberIn(`${directory}/memory.swap.current`, read) ?? 0,
    ...(limit !== undefined && { limit }),
    ...(swapLimit !== undefined && { swapLimit }),
    ...(psi && { psi }),
  };
}
