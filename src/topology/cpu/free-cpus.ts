import { type CpuSet, sortedCpus, without } from "../../model/cpu-set.ts";
import type { CpuPlace } from "../../model/machine-topology.ts";
import type { CpuLayout, Level } from "./cpu-layout.ts";

/** Free CPUs in the order in which they are taken: groups with the fewest free CPUs first, then the lowest number. */
export class FreeCpus {
  private readonly places: readonly CpuPlace[];
  private readonly counts = new Map<Level, ReadonlyMap<number, number>>();

  constructor(
    private readonly layout: CpuLayout,
    readonly cpus: CpuSet,
  ) {
    this.places = layout.placesOf(cpus);
  }

  numas(): readonly number[] {
    if (this.isNumaFirst) return this.sorted("numa", this.places);
    return this.sockets().flatMap((socket) => this.sorted("numa", this.in("socket", socket)));
  }

  sockets(): readonly number[] {
    if (!this.isNumaFirst) return this.sorted("socket", this.places);
    return this.numas().flatMap((numa) => this.sorted("socket", this.in("numa", numa)));
  }

  uncores(): readonly number[] {
    return this.numas().flatMap((numa) => this.sorted("uncore", this.in("numa", numa)));
  }

  cores(): readonly number[] {
    if (this.isNumaFirst) return this.sockets().flatMap((socket) => this.sorted("core", this.in("socket", socket)));
    return this.numas().flatMap((numa) => this.sorted("core", this.in("numa", numa)));
  }

  /** Core by core. */
  packed(): readonly number[] {
    return this.cores().flatMap((core) => this.cpusIn("core", core));
  }

  /** One thread of each core first, where threads of a core are numbered far apart, as on x86. */
  spread(): readonly number[] {
    return this.sockets().flatMap((socket) => this.cpusIn("socket", socket));
  }

  /** How many CPUs of the group are free. */
  count(level: Level, id: number): number {
    return this.countsOf(level).get(id) ?? 0;
  }

  /** The groups with a free CPU. */
  ids(level: Level): Iterable<number> {
    return this.countsOf(level).keys();
  }

  /** The free CPUs of a group, in ascending order. */
  cpusIn(level: Level, id: number): readonly number[] {
    return sortedCpus(this.in(level, id).map(({ cpu }) => cpu));
  }

  /** Cores of an L3 group that have a free CPU, in ascending order. */
  coresInUncore(uncore: number): readonly number[] {
    return sortedCpus(new Set(this.in("uncore", uncore).map(({ core }) => core)));
  }

  without(taken: CpuSet): FreeCpus {
    return new FreeCpus(this.layout, without(this.cpus, taken));
  }

  /** NUMA nodes hold sockets, or as many; otherwise sockets hold NUMA nodes. */
  private get isNumaFirst(): boolean {
    return this.layout.groups.socket.size >= this.layout.groups.numa.size;
  }

  private in(level: Level, id: number): readonly CpuPlace[] {
    return this.places.filter((place) => place[level] === id);
  }

  private sorted(level: Level, places: readonly CpuPlace[]): readonly number[] {
    const ids = [...new Set(places.map((place) => place[level]))];
    return ids.sort((a, b) => this.count(level, a) - this.count(level, b) || a - b);
  }

  private countsOf(level: Level): ReadonlyMap<number, number> {
    const known = this.counts.get(level);
    if (known !== undefined) return known;
    const counts = this.layout.count(this.cpus, level);
    this.counts.set(level, counts);
    return counts;
  }
}
