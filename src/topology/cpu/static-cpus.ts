import { type CpuSet, intersection, NO_CPUS, unionOf, without } from "../../model/cpu-set.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import { declaredContainers } from "../../model/pod-facts.ts";
import type { Rejection } from "../../model/rejection.ts";
import { type HintProvider, type Hints, type NumaMask, nodesOf, type TopologyHint } from "../../model/topology.ts";
import type { Demand } from "../demand.ts";
import { initialContainers } from "../initial-containers.ts";
import type { TopologyCounters } from "../metrics.ts";
import type { AllocationCounters, AllocationSource } from "../pinning-metrics.ts";
import { emptyPool } from "../shared-pool.ts";
import type { StateWriter } from "../state-writer.ts";
import { cpuHints } from "./cpu-hints.ts";
import type { CpuLayout } from "./cpu-layout.ts";
import type { CpuCounters } from "./cpu-metrics.ts";
import type { CpuOptions } from "./cpu-options.ts";
import type { CpuState } from "./cpu-state.ts";
import { distributeCpus } from "./distribute-cpus.ts";
import { divideCpus } from "./divide-cpus.ts";
import { takeCpus } from "./take-cpus.ts";

interface StaticCpusDeps {
  readonly layout: CpuLayout;
  readonly state: CpuState;
  readonly demand: Demand;
  readonly writer: Pick<StateWriter, "save" | "saveLater">;
  readonly counted: CpuCounters & Pick<TopologyCounters, "aligned" | "misaligned">;
  readonly allocations: AllocationCounters;
  /** The shared pool has changed. */
  changed(): void;
}

/** The rules of the static policy on this machine. */
export interface StaticCpuRules {
  readonly options: CpuOptions;
  /** Never for a single container. */
  readonly reserved: CpuSet;
}

/** CPUs that containers of a pod have, by whether they hand them on. */
interface HandedOn {
  readonly pod: Pod;
  readonly initial: Set<number>;
  readonly others: Set<number>;
}

const NOTHING: ReadonlyMap<string, number> = new Map();
const NONE: Hints = new Map();
const IMPOSSIBLE: Hints = new Map([["cpu", []]]);

/**
 * Gives whole CPUs to single containers of Guaranteed pods: the policy static.
 *
 *     all CPUs = shared pool (with the reserved ones) + CPUs of single containers
 *
 * Containers that initialize a pod hand their CPUs on to those after them.
 */
export class StaticCpus implements HintProvider {
  readonly name = "cpu";
  /** Pods whose CPUs are reserved and not on the disk yet. */
  private readonly unsaved = new Map<string, AllocationSource>();
  /** Of the pod that was asked about last: it may have thousands of containers, and is asked about for each. */
  private handedOn: HandedOn | undefined;

  constructor(
    private readonly deps: StaticCpusDeps,
    private readonly rules: StaticCpuRules,
  ) {}

  hints(pod: Pod, container: Container): Hints {
    const wanted = this.deps.demand.cpus(pod, container);
    if (wanted === 0) return NONE;
    const had = this.deps.state.exclusive(uidOf(pod), container.name);
    if (had === undefined) return this.hintsFor(wanted, this.available(), this.reusable(pod));
    return had.size === wanted ? this.hintsFor(wanted, had, NO_CPUS) : IMPOSSIBLE;
  }

  podHints(pod: Pod): Hints {
    const { state, demand } = this.deps;
    const wanted = demand.podCpus(pod);
    if (wanted === 0) return NONE;
    if (this.problem(pod) !== undefined) return IMPOSSIBLE;
    const whole = state.podEntries.get(uidOf(pod));
    if (whole !== undefined) return whole.size === wanted ? this.hintsFor(wanted, whole, NO_CPUS) : IMPOSSIBLE;
    const had = state.ofPod(uidOf(pod));
    const isOther = declaredContainers(pod).some(
      (container) => had.has(container.name) && had.get(container.name)?.size !== demand.cpus(pod, container),
    );
    if (isOther) return IMPOSSIBLE;
    const assigned = unionOf(...had.values());
    if (assigned.size === wanted) return this.hintsFor(wanted, assigned, NO_CPUS);
    return this.hintsFor(wanted, this.available(), unionOf(this.reusable(pod), assigned));
  }

  problem(pod: Pod): string | undefined {
    const { demand } = this.deps;
    const total = demand.isPodLevel(pod) ? demand.podCpus(pod) : 0;
    if (total === 0) return undefined;
    const of = (container: Container): ReadonlyMap<string, number> => this.needs(pod, container);
    return emptyPool(pod, { total: new Map([["cpu", total]]), of });
  }

  reserve(pod: Pod, container: Container, affinity: TopologyHint): Rejection | undefined {
    const { state, counted, allocations } = this.deps;
    const wanted = this.deps.demand.cpus(pod, container);
    if (wanted === 0) return undefined;
    counted.requested();
    return this.attempt("node", () => {
      if (state.exclusive(uidOf(pod), container.name) !== undefined) return undefined;
      const rejection = this.misalignment(wanted);
      if (rejection !== undefined) return rejection;
      const cpus = this.take(wanted, affinity.numa, this.reusable(pod));
      state.assign(uidOf(pod), container.name, cpus);
      note(this.handedOnIn(pod), container.name, cpus);
      this.taken(pod, cpus, "node");
      allocations.allocated("node");
      allocations.assigned("node_exclusive");
      return undefined;
    });
  }

  /** Reserves for the pod as a whole, and divides it among the containers. */
  reservePod(pod: Pod, affinity: TopologyHint): Rejection | undefined {
    const { state, demand, counted, allocations } = this.deps;
    const uid = uidOf(pod);
    const wanted = demand.podCpus(pod);
    if (wanted === 0) return undefined;
    return this.attempt("pod", () => {
      const message = this.problem(pod);
      if (message !== undefined) return { reason: "EmptyPodSharedPoolError", message };
      // What containers have of an agent with another scope stays.
      if (state.podEntries.has(uid) || state.ofPod(uid).size > 0) return undefined;
      const rejection = this.misalignment(wanted);
      if (rejection !== undefined) return rejection;
      const cpus = this.take(wanted, affinity.numa, NO_CPUS);
      const portions = divideCpus(pod, {
        cpus,
        wanted: (container) => demand.cpus(pod, container),
        take: (from, count) => this.choose(from, count),
      });
      this.handedOn = undefined;
      state.assignPod(uid, cpus);
      for (const [name, portion] of portions) {
        if (portion.isExclusive) counted.requested();
        allocations.assigned(portion.isExclusive ? "pod_exclusive" : "pod_shared");
        allocations.allocated("pod");
        state.assign(uid, name, portion.cpus);
      }
      this.taken(pod, cpus, "pod");
      return undefined;
    });
  }

  async commit(pod: Pod): Promise<void> {
    const source = this.unsaved.get(uidOf(pod));
    if (source === undefined) return;
    this.unsaved.delete(uidOf(pod));
    try {
      await this.deps.writer.save();
    } catch (error) {
      this.failed(source);
      throw error;
    }
  }

  isLackedBy(pod: Pod): boolean {
    const { state } = this.deps;
    return !state.podEntries.has(uidOf(pod)) && state.ofPod(uidOf(pod)).size === 0;
  }

  release(uid: string): void {
    const { state, writer, changed } = this.deps;
    const released = state.remove(uid);
    this.handedOn = undefined;
    if (released.size === 0) return;
    state.shared = unionOf(state.shared, without(released, state.allExclusive()));
    this.unsaved.delete(uid);
    changed();
    writer.saveLater();
  }

  held(): Iterable<string> {
    return this.deps.state.holders();
  }

  free(): ReadonlyMap<number, number> {
    return this.deps.layout.count(this.available(), "numa");
  }

  needs(pod: Pod, container: Container | undefined): ReadonlyMap<string, number> {
    const { demand } = this.deps;
    const needed = container === undefined ? demand.podCpus(pod) : demand.cpus(pod, container);
    return needed === 0 ? NOTHING : new Map([["cpu", needed]]);
  }

  /** Counts what comes out of it. */
  private attempt(source: AllocationSource, reserve: () => Rejection | undefined): Rejection | undefined {
    let isDone = false;
    try {
      const rejection = reserve();
      isDone = rejection === undefined;
      return rejection;
    } finally {
      if (!isDone) this.failed(source);
      const isCounted = this.rules.options.fullCoresOnly && source === "node";
      if (isCounted) this.deps.counted[isDone ? "aligned" : "misaligned"]("container", "physical_cpu");
    }
  }

  private failed(source: AllocationSource): void {
    this.deps.counted.failed();
    this.deps.allocations.failed(source);
  }

  private taken(pod: Pod, cpus: CpuSet, source: AllocationSource): void {
    const { state, layout, counted, changed } = this.deps;
    state.shared = without(state.shared, cpus);
    if (layout.groupsOf(cpus, "uncore").size === 1) counted.aligned("container", "uncore_cache");
    this.unsaved.set(uidOf(pod), source);
    changed();
  }

  /** CPUs that a container can still have for itself. */
  private available(): CpuSet {
    return without(this.deps.state.shared, this.rules.reserved);
  }

  /** What containers of the pod that have initialized it hand on. */
  private reusable(pod: Pod): CpuSet {
    const { initial, others } = this.handedOnIn(pod);
    return without(initial, others);
  }

  private handedOnIn(pod: Pod): HandedOn {
    if (this.handedOn?.pod === pod) return this.handedOn;
    const handedOn = { pod, initial: new Set<number>(), others: new Set<number>() };
    for (const [name, cpus] of this.deps.state.ofPod(uidOf(pod))) note(handedOn, name, cpus);
    this.handedOn = handedOn;
    return handedOn;
  }

  private hintsFor(wanted: number, available: CpuSet, reusable: CpuSet): Hints {
    const { alignsBySocket } = this.rules.options;
    return new Map([["cpu", cpuHints(this.deps.layout, { wanted, available, reusable, alignsBySocket })]]);
  }

  /** With whole cores only, a part of a core is nobody's. */
  private misalignment(wanted: number): Rejection | undefined {
    const { layout, state } = this.deps;
    if (!this.rules.options.fullCoresOnly) return undefined;
    const perCore = layout.cpusPerCore;
    const reason = "SMTAlignmentError";
    if (wanted % perCore !== 0) {
      return {
        reason,
        message: `SMT Alignment Error: requested ${wanted} cpus not multiple cpus per core = ${perCore}`,
      };
    }
    const reservedCores = layout.cpusIn("core", layout.groupsOf(this.rules.reserved, "core"));
    const free = without(state.shared, reservedCores).size;
    if (wanted <= free) return undefined;
    const numbers = `available physical CPUs = ${free}, requested CPUs = ${wanted}, CPUs per core = ${perCore}`;
    return { reason, message: `SMT Alignment Error: not enough free physical CPUs: ${numbers}` };
  }

  /** Takes CPUs on the nodes of the affinity first. */
  private take(wanted: number, numa: NumaMask | undefined, reusable: CpuSet): CpuSet {
    const allocatable = unionOf(this.available(), reusable);
    const near = numa === undefined ? NO_CPUS : intersection(allocatable, this.near(numa));
    const first = this.choose(near, Math.min(near.size, wanted));
    return unionOf(first, this.choose(without(allocatable, first), wanted - first.size));
  }

  private near(numa: NumaMask): CpuSet {
    const { layout } = this.deps;
    const cpus = layout.cpusIn("numa", nodesOf(numa));
    return this.rules.options.alignsBySocket ? layout.cpusIn("socket", layout.groupsOf(cpus, "socket")) : cpus;
  }

  private choose(available: CpuSet, wanted: number): CpuSet {
    return chooseCpus({ layout: this.deps.layout, available }, wanted, this.rules.options);
  }
}

/** Chooses CPUs by the options. Throws an Error if there are not enough. Pure. */
export function chooseCpus(
  from: { readonly layout: CpuLayout; readonly available: CpuSet },
  wanted: number,
  options: CpuOptions,
): CpuSet {
  if (wanted < 1) return NO_CPUS;
  const isSpread = options.distributesAcrossCores;
  if (!options.distributesAcrossNuma) return takeCpus(from, wanted, { isSpread, alignsUncore: options.alignsByUncore });
  const groupSize = options.fullCoresOnly ? from.layout.cpusPerCore : 1;
  return distributeCpus(from, wanted, { groupSize, isSpread });
}

function note({ pod, initial, others }: HandedOn, container: string, cpus: CpuSet): void {
  const noted = initialContainers(pod).has(container) ? initial : others;
  for (const cpu of cpus) noted.add(cpu);
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? "";
}
