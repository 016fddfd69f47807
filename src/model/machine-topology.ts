import { type CpuSet, sortedCpus } from "./cpu-set.ts";

/** Where a logical CPU is. */
export interface CpuPlace {
  readonly cpu: number;
  /** The lowest CPU of its core: unique on the machine, unlike the kernel's core id. */
  readonly core: number;
  readonly socket: number;
  readonly numa: number;
  /** The group that shares an L3 cache, if that is a part of a NUMA node; else the socket. */
  readonly uncore: number;
}

/** One size of huge pages on a NUMA node. */
export interface HugePagePool {
  readonly pageBytes: number;
  readonly pages: number;
}

/** A NUMA node; it may have no CPU or no memory. */
export interface NumaNode {
  readonly id: number;
  readonly memoryBytes: number;
  readonly hugePages: readonly HugePagePool[];
  /** To each node of the machine, in the order of their ids; empty if the kernel does not tell. */
  readonly distances: readonly number[];
}

/** The processors and the memory of the machine, as the kernel describes them; online CPUs only. */
export interface MachineTopology {
  readonly cpus: readonly CpuPlace[];
  readonly nodes: readonly NumaNode[];
  /** CPUs that are present and turned off. */
  readonly offline: readonly number[];
}

type Level = Exclude<keyof CpuPlace, "cpu">;

/** Groups the CPUs by core, socket, NUMA node or L3 group, in ascending order of both. */
export function groupCpus(cpus: Iterable<CpuPlace>, level: Level): ReadonlyMap<number, CpuSet> {
  const groups = new Map<number, Set<number>>();
  for (const place of cpus) {
    const group = groups.get(place[level]);
    if (group === undefined) groups.set(place[level], new Set([place.cpu]));
    else group.add(place.cpu);
  }
  return new Map(sortedCpus(groups.keys()).map((id) => [id, groups.get(id) ?? new Set()]));
}

/** Returns the resource of huge pages of a size: `hugepages-2Mi`. */
export function hugePageResource(pageBytes: number): string {
  const units = ["Ki", "Mi", "Gi", "Ti"];
  let amount = pageBytes / 1024;
  let unit = 0;
  for (; amount % 1024 === 0 && unit < units.length - 1; amount /= 1024) unit++;
  return `hugepages-${amount}${units[unit]}`;
}
