import { type CpuSet, intersection, NO_CPUS, unionOf, without } from "../../model/cpu-set.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import { isSidecar } from "../../model/pod-facts.ts";
import type { Rejection } from "../../model/rejection.ts";
import { type Grant, type HintProvider, type Hints, type NumaMask, nodesOf } from "../../model/topology.ts";
import { exclusiveCpus, podDemand } from "../demand.ts";
import type { TopologyCounters } from "../metrics.ts";
import type { StateWriter } from "../state-writer.ts";
import { cpuHints } from "./cpu-hints.ts";
import type { CpuLayout } from "./cpu-layout.ts";
import type { CpuCounters } from "./cpu-metrics.ts";
import type { CpuOptions } from "./cpu-options.ts";
import type { CpuState } from "./cpu-state.ts";
import { distributeCpus } from "./distribute-cpus.ts";
import { takeCpus } from "./take-cpus.ts";

interface StaticCpusDeps {
  readonly layout: CpuLayout;
  readonly state: CpuState;
  readonly writer: Pick<StateWriter, "save" | "saveLater">;
  readonly counted: CpuCounters & Pick<TopologyCounters, "aligned" | "misaligned">;
}

/** The rules of the static policy on this machine. */
export interface StaticCpuRules {
  readonly options: CpuOptions;
  /** Never for a single container. */
  readonly reserved: CpuSet;
}

const NONE: Hints = new Map();

/**
 * Gives whole CPUs to single containers of Guaranteed pods: the policy static.
 *
 *     all CPUs = shared pool (with the reserved ones) + CPUs of single containers
 *
 * Containers that initialize a pod hand their CPUs on to those after them.
 */
export class StaticCpus implements HintProvider {
  readonly name = "cpu";

  constructor(
    private readonly deps: StaticCpusDeps,
    private readonly rules: StaticCpuRules,
  ) {}

  hints(pod: Pod, container: Container): Hints {
    const wanted = exclusiveCpus(pod, container);
    if (wanted === 0) return NONE;
    const had = this.deps.state.exclusive(uidOf(pod), container.name);
    if (had === undefined) return this.hintsFor(wanted, this.available(), this.reusable(pod));
    return had.size === wanted ? this.hintsFor(wanted, had, NO_CPUS) : new Map([["cpu", []]]);
  }

  podHints(pod: Pod): Hints {
    const wanted = podDemand(pod, demandOf(pod)).get("cpu") ?? 0;
    if (wanted === 0) return NONE;
    const had = this.deps.state.ofPod(uidOf(pod));
    const isOther = containersOf(pod).some(
      (container) => had.has(container.name) && had.get(container.name)?.size !== exclusiveCpus(pod, container),
    );
    if (isOther) return new Map([["cpu", []]]);
    const assigned = unionOf(...had.values());
    if (assigned.size === wanted) return this.hintsFor(wanted, assigned, NO_CPUS);
    return this.hintsFor(wanted, this.available(), unionOf(this.reusable(pod), assigned));
  }

  async allocate(pod: Pod, container: Container, { affinity }: Grant): Promise<Rejection | undefined> {
    const { state, writer, counted } = this.deps;
    const wanted = exclusiveCpus(pod, container);
    if (wanted === 0) return undefined;
    counted.requested();
    let isDone = false;
    try {
      const rejection = this.misalignment(wanted);
      if (rejection !== undefined) return rejection;
      if (state.exclusive(uidOf(pod), container.name) === undefined) {
        const cpus = this.take(wanted, affinity.numa, this.reusable(pod));
        state.assign(uidOf(pod), container.name, cpus);
        state.shared = without(state.shared, cpus);
        if (this.deps.layout.groupsOf(cpus, "uncore").size === 1) counted.aligned("container", "uncore_cache");
        await writer.save();
      }
      isDone = true;
      return undefined;
    } finally {
      if (!isDone) counted.failed();
      if (this.rules.options.fullCoresOnly) counted[isDone ? "aligned" : "misaligned"]("container", "physical_cpu");
    }
  }

  release(uid: string): void {
    const { state, writer } = this.deps;
    if (state.ofPod(uid).size === 0) return;
    const released = state.remove(uid);
    state.shared = unionOf(state.shared, without(released, state.allExclusive()));
    writer.saveLater();
  }

  free(): ReadonlyMap<number, number> {
    return this.deps.layout.count(this.available(), "numa");
  }

  needs(pod: Pod, container: Container | undefined): ReadonlyMap<string, number> {
    const needed = container === undefined ? podDemand(pod, demandOf(pod)) : demandOf(pod)(container);
    return new Map([...needed].filter(([, amount]) => amount > 0));
  }

  /** CPUs that a container can still have for itself. */
  private available(): CpuSet {
    return without(this.deps.state.shared, this.rules.reserved);
  }

  /** What containers of the pod that have initialized it hand on. */
  private reusable(pod: Pod): CpuSet {
    const had = this.deps.state.ofPod(uidOf(pod));
    const initial = (pod.spec.initContainers ?? [])
      .filter((container) => !isSidecar(container))
      .map(({ name }) => name);
    const of = (isInitial: boolean): CpuSet =>
      unionOf(...[...had].filter(([name]) => initial.includes(name) === isInitial).map(([, cpus]) => cpus));
    return without(of(true), of(false));
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

function demandOf(pod: Pod): (container: Container) => ReadonlyMap<string, number> {
  return (container) => new Map([["cpu", exclusiveCpus(pod, container)]]);
}

function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? "";
}
