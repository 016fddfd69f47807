import type { Container, Pod } from "../../model/generated/types.ts";
import type { Rejection } from "../../model/rejection.ts";
import {
  type HintProvider,
  type Hints,
  type NumaMask,
  nodesOf,
  numaMask,
  TooManyNodesError,
  type TopologyHint,
} from "../../model/topology.ts";
import type { Amounts, Demand } from "../demand.ts";
import { initialContainers } from "../initial-containers.ts";
import type { AllocationCounters, AllocationSource } from "../pinning-metrics.ts";
import { emptyPool } from "../shared-pool.ts";
import type { StateWriter } from "../state-writer.ts";
import { divideMemory } from "./divide-memory.ts";
import { HandedOnMemory } from "./handed-on-memory.ts";
import {
  bestMemoryHint,
  breaksGroup,
  hasEnough,
  type MemoryRequest,
  memoryHints,
  splitsGroup,
} from "./memory-hints.ts";
import { giveMemory, type MemoryBlock, type MemoryState, takeMemory } from "./memory-state.ts";

interface StaticMemoryDeps {
  readonly state: MemoryState;
  readonly demand: Demand;
  readonly writer: Pick<StateWriter, "save" | "saveLater">;
  readonly counted: { requested(): void; failed(): void };
  readonly allocations: AllocationCounters;
}

const NONE: Hints = new Map();

/** Gives memory and huge pages of as few NUMA nodes as possible to containers of Guaranteed pods: the policy Static. */
export class StaticMemory implements HintProvider {
  readonly name = "memory";
  private readonly handedOn: HandedOnMemory;
  /** Pods whose memory is reserved and not on the disk yet. */
  private readonly unsaved = new Map<string, AllocationSource>();

  constructor(private readonly deps: StaticMemoryDeps) {
    this.handedOn = new HandedOnMemory(deps.state);
  }

  hints(pod: Pod, container: Container): Hints {
    const { state, demand } = this.deps;
    const wanted = demand.memory(pod, container);
    if (wanted.size === 0) return NONE;
    const had = state.blocks(uidOf(pod), container.name);
    return had === undefined ? this.hintsFor(pod, wanted) : knownHints(had, wanted);
  }

  podHints(pod: Pod): Hints {
    const { state, demand } = this.deps;
    const wanted = demand.podMemory(pod);
    if (wanted.size === 0) return NONE;
    if (this.problem(pod) !== undefined) return new Map([...wanted.keys()].map((type) => [type, []]));
    const whole = state.podEntries.get(uidOf(pod));
    if (whole !== undefined) return knownHints(whole, wanted);
    for (const { name } of containersOf(pod)) {
      const had = state.blocks(uidOf(pod), name);
      if (had !== undefined) return knownHints(had, wanted);
    }
    return this.hintsFor(pod, wanted);
  }

  problem(pod: Pod): string | undefined {
    const { demand } = this.deps;
    if (!demand.isPodLevel(pod)) return undefined;
    return emptyPool(pod, { total: demand.podMemory(pod), of: (container) => demand.memory(pod, container) });
  }

  reserve(pod: Pod, container: Container, affinity: TopologyHint): Rejection | undefined {
    const { state, demand, counted } = this.deps;
    const wanted = demand.memory(pod, container);
    if (wanted.size === 0) return undefined;
    counted.requested();
    return this.attempt("node", () => {
      const had = state.blocks(uidOf(pod), container.name);
      if (had !== undefined) this.handedOn.note(pod, container, had);
      else this.take(pod, container, { wanted, affinity });
      return undefined;
    });
  }

  /** Reserves for the pod as a whole, and divides it among the containers. */
  reservePod(pod: Pod, affinity: TopologyHint): Rejection | undefined {
    const { state, demand, counted } = this.deps;
    const total = demand.podMemory(pod);
    if (total.size === 0) return undefined;
    counted.requested();
    return this.attempt("pod", () => {
      const message = this.problem(pod);
      if (message !== undefined) return { reason: "EmptyPodSharedPoolError", message };
      // What containers have of an agent with another scope stays.
      if (state.podEntries.has(uidOf(pod)) || state.entries.has(uidOf(pod))) return undefined;
      this.takePod(pod, total, nodesOf(this.place(pod, total, affinity)));
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
    return !state.podEntries.has(uidOf(pod)) && !state.entries.has(uidOf(pod));
  }

  release(uid: string): void {
    const { state, writer } = this.deps;
    this.handedOn.release(uid);
    const whole = state.podEntries.get(uid);
    const blocks = whole ?? [...(state.entries.get(uid)?.values() ?? [])].flat();
    if (whole === undefined && !state.entries.has(uid)) return;
    for (const block of blocks) giveMemory(state.nodes, block);
    state.deletePod(uid);
    this.unsaved.delete(uid);
    writer.saveLater();
  }

  /** Releases what containers that initialize the pod had, once one after them is created: they have completed. */
  created(pod: Pod, { name }: Container): void {
    const initial = initialContainers(pod);
    const before = initial.names.slice(0, initial.countBefore(name));
    const had = before.filter((each) => this.deps.state.blocks(uidOf(pod), each) !== undefined);
    for (const each of had) this.releaseContainer(uidOf(pod), each);
    if (had.length > 0) this.deps.writer.saveLater();
  }

  held(): Iterable<string> {
    return this.deps.state.holders();
  }

  free(resource: string): ReadonlyMap<number, number> {
    const nodes = [...this.deps.state.nodes];
    return new Map(nodes.map(([id, { tables }]) => [id, tables.get(resource)?.free ?? 0]));
  }

  needs(pod: Pod, container: Container | undefined): ReadonlyMap<string, number> {
    const { demand } = this.deps;
    return container === undefined ? demand.podMemory(pod) : demand.memory(pod, container);
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
    }
  }

  private failed(source: AllocationSource): void {
    this.deps.counted.failed();
    this.deps.allocations.failed(source);
  }

  private hintsFor(pod: Pod, wanted: Amounts): Hints {
    const hints = memoryHints(this.deps.state.nodes, this.request(pod, wanted));
    // No hint at all counts as no preference, as in Kubernetes: the allocation fails afterwards.
    return hints.length === 0 ? NONE : new Map([...wanted.keys()].map((type) => [type, hints]));
  }

  private request(pod: Pod, wanted: Amounts): MemoryRequest {
    return { wanted, reusable: (mask, type) => this.handedOn.bytes(uidOf(pod), mask, type) };
  }

  /** The best nodes, those of `within` among them. */
  private best(pod: Pod, wanted: Amounts, within?: NumaMask): TopologyHint | undefined {
    try {
      return bestMemoryHint(this.deps.state.nodes, this.request(pod, wanted), within);
    } catch (error) {
      if (!(error instanceof TooManyNodesError)) throw error;
      throw new Error(`[memorymanager] ${error.message}: set memoryManagerPolicy to None`, { cause: error });
    }
  }

  private take(
    pod: Pod,
    container: Container,
    { wanted, affinity }: { readonly wanted: Amounts; readonly affinity: TopologyHint },
  ): void {
    const { state, allocations } = this.deps;
    const uid = uidOf(pod);
    const numa = this.place(pod, wanted, affinity);
    const blocks = [...wanted].map(([type, bytes]): MemoryBlock => ({ nodes: nodesOf(numa), type, bytes }));
    for (const block of blocks) {
      const bytes = Math.max(0, block.bytes - this.handedOn.bytes(uid, numa, block.type));
      takeMemory(state.nodes, { ...block, bytes });
      allocations.allocated("node");
    }
    this.handedOn.note(pod, container, blocks);
    state.setBlocks(uid, container.name, blocks);
    this.handedOn.shrink(pod, container, blocks);
    allocations.assigned("node_exclusive");
    this.unsaved.set(uid, "node");
  }

  private takePod(pod: Pod, total: Amounts, nodes: readonly number[]): void {
    const { state, demand, counted, allocations } = this.deps;
    const uid = uidOf(pod);
    const blocksOf = (amounts: Amounts): readonly MemoryBlock[] =>
      [...amounts].map(([type, bytes]) => ({ nodes, type, bytes }));
    const whole = blocksOf(total);
    for (const block of whole) takeMemory(state.nodes, block);
    state.setPodBlocks(uid, whole);
    this.unsaved.set(uid, "pod");
    const init = new Set((pod.spec.initContainers ?? []).map(({ name }) => name));
    for (const [name, portion] of divideMemory(pod, { total, of: (each) => demand.memory(pod, each) })) {
      state.setBlocks(uid, name, blocksOf(portion.amounts));
      // Init containers count also if they share, as in Kubernetes.
      if (portion.isExclusive || init.has(name)) counted.requested();
      allocations.assigned(portion.isExclusive ? "pod_exclusive" : "pod_shared");
      allocations.allocated("pod");
    }
  }

  /** The nodes to allocate on: those of the affinity, and more if they are not enough. */
  private place(pod: Pod, wanted: Amounts, affinity: TopologyHint): NumaMask {
    const { nodes } = this.deps.state;
    const hint = affinity.numa === undefined ? this.anywhere(pod, wanted, affinity) : affinity;
    let numa = hint.numa ?? 0n;
    // The original would use a node alone that is part of a group, and lose count of what the group has.
    const isSplit = splitsGroup(nodes, numa);
    if (isSplit || !hasEnough(nodes, numa, wanted)) {
      const wider = this.best(pod, wanted, numa) ?? (isSplit ? this.best(pod, wanted) : undefined);
      if (wider?.numa === undefined) {
        throw new Error("[memorymanager] failed to find NUMA nodes to extend the current topology hint");
      }
      if (!wider.isPreferred && hint.isPreferred) {
        throw new Error("[memorymanager] failed to find the extended preferred hint");
      }
      numa = wider.numa;
    }
    if (breaksGroup(nodes, numa)) throw new Error("[memorymanager] preferred hint violates NUMA node allocation");
    return numa;
  }

  private anywhere(pod: Pod, wanted: Amounts, affinity: TopologyHint): TopologyHint {
    const hint = this.best(pod, wanted);
    if (hint === undefined) {
      const why = "no NUMA nodes with enough memory is available";
      throw new Error(`[memorymanager] failed to get the default NUMA affinity, ${why}`);
    }
    if (!hint.isPreferred && affinity.isPreferred) {
      throw new Error("[memorymanager] failed to find the default preferred hint");
    }
    return hint;
  }

  private releaseContainer(uid: string, name: string): void {
    const { state } = this.deps;
    // What a container has of its pod's memory is released with the pod.
    const blocks = state.podEntries.has(uid) ? [] : (state.blocks(uid, name) ?? []);
    for (const block of blocks) giveMemory(state.nodes, block);
    state.delete(uid, name);
  }
}

/** The hints of what a container has already; none if that is not what it asks for. */
function knownHints(had: readonly MemoryBlock[], wanted: Amounts): Hints {
  const isSame = had.length === wanted.size && had.every(({ type, bytes }) => wanted.get(type) === bytes);
  if (!isSame) return NONE;
  return new Map(had.map(({ type, nodes }) => [type, [{ numa: numaMask(nodes), isPreferred: true }]]));
}

/** In the order in which they start. */
function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? "";
}
