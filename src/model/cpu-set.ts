/** Numbers of CPUs (or of cores, sockets, NUMA nodes). */
export type CpuSet = ReadonlySet<number>;

export const NO_CPUS: CpuSet = new Set<number>();

/** The largest number of a CPU that is taken for one: the kernel has far fewer, and a range is written out. */
const MOST_CPU = 65_535;

/** Parses the kernel's list format, `0-3,8`; empty is no CPU. Throws an Error for anything else. */
export function parseCpuSet(text: string): CpuSet {
  const found = new Set<number>();
  if (text === "") return found;
  for (const range of text.split(",")) {
    const [, from, to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(range) ?? [];
    const [first, last] = [Number(from), Number(to)];
    if (from === undefined || first > last || last > MOST_CPU) throw new Error(`"${range}" is not a range of CPUs`);
    for (let cpu = first; cpu <= last; cpu++) found.add(cpu);
  }
  return found;
}

/** Returns the kernel's list format, the shortest one, in ascending order: the one of Kubernetes' state files. */
export function formatCpuSet(cpus: CpuSet): string {
  const ranges: [number, number][] = [];
  for (const cpu of sortedCpus(cpus)) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] + 1 === cpu) last[1] = cpu;
    else ranges.push([cpu, cpu]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
}

/** In ascending order. */
export function sortedCpus(cpus: Iterable<number>): readonly number[] {
  return [...cpus].sort((a, b) => a - b);
}

export function unionOf(...sets: readonly Iterable<number>[]): CpuSet {
  const all = new Set<number>();
  for (const set of sets) for (const cpu of set) all.add(cpu);
  return all;
}

/** Those of `a` that are not in `b`. */
export function without(a: CpuSet, b: CpuSet): CpuSet {
  return new Set([...a].filter((cpu) => !b.has(cpu)));
}

export function intersection(a: CpuSet, b: CpuSet): CpuSet {
  return new Set([...a].filter((cpu) => b.has(cpu)));
}

export function isSameSet(a: CpuSet, b: CpuSet): boolean {
  return a.size === b.size && [...a].every((cpu) => b.has(cpu));
}
