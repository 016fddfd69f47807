import type { Container, Pod } from "../../model/generated/types.ts";
import { isSidecar } from "../../model/pod-facts.ts";
import type { Rejection } from "../../model/rejection.ts";
import {
  type HintProvider,
  type Hints,
  type NumaMask,
  nodesOf,
  numaMask,
  type TopologyHint,
} from "../../model/topology.ts";
import type { Amounts, Demand } from "../demand.ts";
import type { AllocationCounters, AllocationSource } from "../pinning-metrics.ts";
import { emptyPool } from "../shared-pool.ts";
import type { StateWriter } from "../state-writer.ts";
import { divideMemory } from "./divide-memory.ts";
import { bestHint, breaksGroup, hasEnough, isPartOf, memoryHints, splitsGroup } from "./memory-hints.ts";
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
  /** What containers that have initialized the pod hand on: bytes by nodes and kind. Of one pod at a time. */
  private readonly handedOn = { uid: "", bytes: new Map<string, number>() };
  /** Pods whose memory is reserved and not on the disk yet. */
  private readonly unsaved = new Map<string, AllocationSource>();

  constructor(private readonly deps: StaticMemoryDeps) {}

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
      if (had !== undefined) this.handOn(pod, container, had);
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

  release(uid: string): void {
    const { state, writer } = this.deps;
    // A static pod may come back with the same UID.
    if (this.handedOn.uid === uid) this.handedOn.bytes.clear();
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
    const initial = pod.spec.initContainers ?? [];
    const at = initial.findIndex((container) => container.name === name);
    const before = (at < 0 ? initial : initial.slice(0, at)).filter((container) => !isSidecar(container));
    const had = before.filter((container) => this.deps.state.blocks(uidOf(pod), container.name) !== undefined);
    for (const container of had) this.releaseContainer(uidOf(pod), container.name);
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

  private hintsFor(pod: Pod, wanted: ReadonlyMap<string, number>): Hints {
    const hints = this.possible(pod, wanted);
    // No hint at all counts as no preference, as in Kubernetes: the allocation fails afterwards.
    return hints.length === 0 ? NONE : new Map([...wanted.keys()].map((type) => [type, hints]));
  }

  private possible(pod: Pod, wanted: ReadonlyMap<string, number>): readonly TopologyHint[] {
    const reusable = (mask: NumaMask, type: string): number => this.reusable(uidOf(pod), mask, type);
    return memoryHints(this.deps.state.nodes, { wanted, reusable });
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
      const bytes = Math.max(0, block.bytes - this.reusable(uid, numa, block.type));
      takeMemory(state.nodes, { ...block, bytes });
      allocations.allocated("node");
    }
    this.handOn(pod, container, blocks);
    state.setBlocks(uid, container.name, blocks);
    this.shrinkInitial(pod, container, blocks);
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
    for (const [name, portion] of divideMemory(pod, { total, of: (each) => demand.memory(pod, each) })) {
      state.setBlocks(uid, name, blocksOf(portion.amounts));
      if (portion.isExclusive) counted.requested();
      allocations.assigned(portion.isExclusive ? "pod_exclusive" : "pod_shared");
      allocations.allocated("pod");
    }
  }

  /** The nodes to allocate on: those of the affinity, and more if they are not enough. */
  private place(pod: Pod, wanted: ReadonlyMap<string, number>, affinity: TopologyHint): NumaMask {
    const { nodes } = this.deps.state;
    const hint = affinity.numa === undefined ? this.anywhere(pod, wanted, affinity) : affinity;
    let numa = hint.numa ?? 0n;
    // The original would use a node alone that is part of a group, and lose count of what the group has.
    const isSplit = splitsGroup(nodes, numa);
    if (isSplit || !hasEnough(nodes, numa, wanted)) {
      const possible = this.possible(pod, wanted);
      const wider =
        bestHint(possible.filter((each) => isPartOf(numa, each.numa ?? 0n))) ??
        (isSplit ? bestHint(possible) : undefined);
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

  private anywhere(pod: Pod, wanted: ReadonlyMap<string, number>, affinity: TopologyHint): TopologyHint {
    const hint = bestHint(this.possible(pod, wanted));
    if (hint === undefined) {
      const why = "no NUMA nodes with enough memory is available";
      throw new Error(`[memorymanager] failed to get the default NUMA affinity, ${why}`);
    }
    if (!hint.isPreferred && affinity.isPreferred) {
      throw new Error("[memorymanager] failed to find the default preferred hint");
    }
    return hint;
  }

  private reusable(uid: string, mask: NumaMask, type: string): number {
    return this.handedOn.uid === uid ? (this.handedOn.bytes.get(`${mask}/${type}`) ?? 0) : 0;
  }

  /** Notes what the container hands on to those after it, or has of what was handed on. */
  private handOn(pod: Pod, container: Container, blocks: readonly MemoryBlock[]): void {
    const { handedOn } = this;
    if (handedOn.uid !== uidOf(pod)) {
      handedOn.uid = uidOf(pod);
      handedOn.bytes.clear();
    }
    for (const { nodes, type, bytes } of blocks) {
      const key = `${numaMask(nodes)}/${type}`;
      const known = handedOn.bytes.get(key) ?? 0;
      handedOn.bytes.set(key, isInitial(pod, container) ? Math.max(known, bytes) : Math.max(0, known - bytes));
    }
  }

  /** What the container has of those that initialize the pod is not counted twice when it is released. */
  private shrinkInitial(pod: Pod, container: Container, blocks: readonly MemoryBlock[]): void {
    const { state } = this.deps;
    const initial = pod.spec.initContainers ?? [];
    const at = initial.findIndex(({ name }) => name === container.name);
    const before = (at < 0 ? initial : initial.slice(0, at)).filter((each) => !isSidecar(each));
    for (const block of blocks) {
      let rest = block.bytes;
      for (const { name } of before) {
        const had = state.blocks(uidOf(pod), name);
        if (had === undefined || rest === 0) continue;
        const shrunk = had.map((each) => {
          if (each.type !== block.type || numaMask(each.nodes) !== numaMask(block.nodes)) return each;
          const taken = Math.min(each.bytes, rest);
          rest -= taken;
          return { ...each, bytes: each.bytes - taken };
        });
        state.setBlocks(uidOf(pod), name, shrunk);
      }
    }
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
function knownHints(had: readonly MemoryBlock[], wanted: ReadonlyMap<string, number>): Hints {
  const isSame = had.length === wanted.size && had.every(({ type, bytes }) => wanted.get(type) === bytes);
  if (!isSame) return NONE;
  return new Map(had.map(({ type, nodes }) => [type, [{ numa: numaMask(nodes), isPreferred: true }]]));
}

/** In the order in which they start. */
function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec.initContainers ?? []), ...spec.containers];
}

function isInitial({ spec }: Pod, { name }: Container): boolean {
  return (spec.initContainers ?? []).some((container) => container.name === name && !isSidecar(container));
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? "";
}
