import { type CpuSet, sortedCpus, unionOf } from "../../model/cpu-set.ts";
import { type CpuPlace, groupCpus, type MachineTopology } from "../../model/machine-topology.ts";

/** What CPUs are grouped by. */
export type Level = "core" | "uncore" | "socket" | "numa";

/** The CPUs of the machine and their groups; computed once. */
export class CpuLayout {
  readonly all: CpuSet;
  readonly cpusPerCore: number;
  readonly cpusPerSocket: number;
  readonly cpusPerUncore: number;
  /** The groups of each level, with their CPUs, in ascending order. */
  readonly groups: Readonly<Record<Level, ReadonlyMap<number, CpuSet>>>;
  private readonly places: ReadonlyMap<number, CpuPlace>;

  constructor({ cpus }: Pick<MachineTopology, "cpus">) {
    this.places = new Map(cpus.map((place) => [place.cpu, place]));
    this.all = new Set(sortedCpus(this.places.keys()));
    this.groups = {
      core: groupCpus(cpus, "core"),
      uncore: groupCpus(cpus, "uncore"),
      socket: groupCpus(cpus, "socket"),
      numa: groupCpus(cpus, "numa"),
    };
    const per = (level: Level): number => Math.floor(cpus.length / Math.max(1, this.groups[level].size));
    this.cpusPerCore = per("core");
    this.cpusPerSocket = per("socket");
    this.cpusPerUncore = per("uncore");
  }

  /** Where these CPUs are; those that the machine does not have are left out. */
  placesOf(cpus: Iterable<number>): readonly CpuPlace[] {
    const found: CpuPlace[] = [];
    for (const cpu of cpus) {
      const place = this.places.get(cpu);
      if (place !== undefined) found.push(place);
    }
    return found;
  }

  /** The groups of a level that these CPUs are in. */
  groupsOf(cpus: Iterable<number>, level: Level): CpuSet {
    return new Set(this.placesOf(cpus).map((place) => place[level]));
  }

  /** All CPUs of these groups. */
  cpusIn(level: Level, ids: Iterable<number>): CpuSet {
    return unionOf(...[...ids].map((id) => this.groups[level].get(id) ?? []));
  }

  /** How many of these CPUs each group of a level has; groups without any are left out. */
  count(cpus: Iterable<number>, level: Level): ReadonlyMap<number, number> {
    const counts = new Map<number, number>();
    for (const cpu of cpus) {
      const id = this.places.get(cpu)?.[level];
      if (id !== undefined) counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  }
}
