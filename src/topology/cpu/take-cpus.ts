import { type CpuSet, unionOf } from "../../model/cpu-set.ts";
import type { CpuLayout, Level } from "./cpu-layout.ts";
import { FreeCpus } from "./free-cpus.ts";

/** How CPUs are chosen. */
export interface TakeRules {
  /** Take one thread of many cores, not all threads of a few. */
  readonly isSpread?: boolean;
  /** Take CPUs that share an L3 cache if possible. */
  readonly alignsUncore?: boolean;
}

/**
 * Takes CPUs so that they are as close together as possible and large groups stay whole for others: whole NUMA nodes and
 * sockets, then L3 groups, then cores, then threads, always of the group with the fewest free CPUs. Throws an Error if
 * there are not enough. Pure.
 */
export function takeCpus(
  { layout, available }: { readonly layout: CpuLayout; readonly available: CpuSet },
  wanted: number,
  rules: TakeRules = {},
): CpuSet {
  if (wanted > available.size) throw new NotEnoughCpus(wanted, available.size);
  const taking = new Taking(layout, new FreeCpus(layout, available), wanted);
  const levels: readonly Level[] =
    layout.groups.socket.size >= layout.groups.numa.size ? ["numa", "socket"] : ["socket", "numa"];
  for (const level of levels) taking.whole(level);
  if (rules.alignsUncore === true) taking.uncores();
  if (rules.isSpread !== true) taking.whole("core");
  taking.single(rules.isSpread === true);
  if (!taking.isDone) throw new Error("failed to allocate cpus");
  return taking.taken;
}

/** There are fewer CPUs than wanted; the words are those of Kubernetes. */
export class NotEnoughCpus extends Error {
  constructor(wanted: number, available: number) {
    super(`not enough cpus available to satisfy request: requested=${wanted}, available=${available}`);
  }
}

class Taking {
  taken: CpuSet = new Set();

  constructor(
    private readonly layout: CpuLayout,
    private free: FreeCpus,
    private needed: number,
  ) {}

  get isDone(): boolean {
    return this.needed < 1;
  }

  /** Takes groups that are free as a whole, as long as they are not more than is needed. */
  whole(level: Level): void {
    if (this.isDone) return;
    for (const id of this.sorted(level)) {
      const all = this.layout.groups[level].get(id) ?? new Set();
      // With CPUs offline the original takes CPUs of others here: it compares with the mean only.
      const isWhole = this.free.count(level, id) === all.size && all.size === this.sizeOf(level, all);
      if (!isWhole || all.size > this.needed) continue;
      this.take(all);
    }
  }

  /** Takes whole L3 groups, and the rest of one that holds all of it. */
  uncores(): void {
    for (const uncore of this.free.uncores()) {
      if (this.isDone) return;
      if (this.needed >= this.layout.cpusPerUncore) this.whole("uncore");
      if (!this.isDone) this.part(uncore);
    }
  }

  single(isSpread: boolean): void {
    for (const cpu of isSpread ? this.free.spread() : this.free.packed()) {
      if (this.isDone) return;
      this.take(new Set([cpu]));
    }
  }

  private part(uncore: number): void {
    const { cpusPerCore } = this.layout;
    const cores = this.free.coresInUncore(uncore).slice(0, Math.ceil(this.needed / cpusPerCore));
    let cpus = cores.flatMap((core) => this.free.cpusIn("core", core)).sort((a, b) => a - b);
    // An odd number leaves one thread of the last core.
    if (this.needed % 2 !== 0 && cpusPerCore > 1 && cpus.length > this.needed) cpus = cpus.slice(0, -1);
    if (cpus.length === this.needed) this.take(new Set(cpus));
  }

  private sorted(level: Level): readonly number[] {
    switch (level) {
      case "numa":
        return this.free.numas();
      case "socket":
        return this.free.sockets();
      case "uncore":
        return this.free.uncores();
      case "core":
        return this.free.cores();
    }
  }

  /** Sockets and cores count as whole with the mean number of CPUs, as in Kubernetes: some may be offline. */
  private sizeOf(level: Level, all: CpuSet): number {
    if (level === "socket") return this.layout.cpusPerSocket;
    return level === "core" ? this.layout.cpusPerCore : all.size;
  }

  private take(cpus: CpuSet): void {
    this.taken = unionOf(this.taken, cpus);
    this.free = this.free.without(cpus);
    this.needed -= cpus.size;
  }
}
