import type { Container, Pod } from "../../model/generated/types.ts";
import { isSidecar } from "../../model/pod-facts.ts";
import {
  type Grant,
  type HintProvider,
  type Hints,
  type NumaMask,
  nodesOf,
  numaMask,
  type TopologyHint,
} from "../../model/topology.ts";
import { canHaveExclusive, exclusiveMemory, podDemand } from "../demand.ts";
import type { StateWriter } from "../state-writer.ts";
import { bestHint, breaksGroup, hasEnough, isPartOf, memoryHints } from "./memory-hints.ts";
import { giveMemory, type MemoryBlock, type MemoryState, takeMemory } from "./memory-state.ts";

interface StaticMemoryDeps {
  readonly state: MemoryState;
  readonly writer: Pick<StateWriter, "save" | "saveLater">;
  readonly counted: { requested(): void; failed(): void };
}

const NONE: Hints = new Map();

/** Gives memory and huge pages of as few NUMA nodes as possible to containers of Guaranteed pods: the policy Static. */
export class StaticMemory implements HintProvider {
  readonly name = "memory";
  /** What containers that have initialized the pod hand on: bytes by nodes and kind. Of one pod at a time. */
  private readonly handedOn = { uid: "", bytes: new Map<string, number>() };

  constructor(private readonly deps: StaticMemoryDeps) {}

  hints(pod: Pod, container: Container): Hints {
    if (!canHaveExclusive(pod)) return NONE;
    const wanted = exclusiveMemory(pod, container);
    const had = this.deps.state.blocks(uidOf(pod), container.name);
    return had === undefined ? this.hintsFor(pod, wanted) : knownHints(had, wanted);
  }

  podHints(pod: Pod): Hints {
    if (!canHaveExclusive(pod)) return NONE;
    const wanted = this.podNeeds(pod);
    for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      const had = this.deps.state.blocks(uidOf(pod), name);
      if (had !== undefined) return knownHints(had, wanted);
    }
    return wanted.size === 0 ? NONE : this.hintsFor(pod, wanted);
  }

  async allocate(pod: Pod, container: Container, { affinity }: Grant): Promise<undefined> {
    if (!canHaveExclusive(pod)) return;
    const { state, writer, counted } = this.deps;
    const uid = uidOf(pod);
    counted.requested();
    try {
      const had = state.blocks(uid, container.name);
      if (had !== undefined) {
        this.handOn(pod, container, had);
        return;
      }
      this.take(pod, container, affinity);
      await writer.save();
    } catch (error) {
      counted.failed();
      throw error;
    }
  }

  release(uid: string): void {
    const names = [...(this.deps.state.entries.get(uid)?.keys() ?? [])];
    for (const name of names) this.releaseContainer(uid, name);
    if (names.length > 0) this.deps.writer.saveLater();
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

  free(resource: string): ReadonlyMap<number, number> {
    const nodes = [...this.deps.state.nodes];
    return new Map(nodes.map(([id, { tables }]) => [id, tables.get(resource)?.free ?? 0]));
  }

  needs(pod: Pod, container: Container | undefined): ReadonlyMap<string, number> {
    return container === undefined ? this.podNeeds(pod) : exclusiveMemory(pod, container);
  }

  /** As in Kubernetes, kinds of memory that only initialization needs do not count for the pod. */
  private podNeeds(pod: Pod): ReadonlyMap<string, number> {
    const all = podDemand(pod, (container) => exclusiveMemory(pod, container));
    const names = new Set(pod.spec.containers.flatMap((container) => [...exclusiveMemory(pod, container).keys()]));
    return new Map([...all].filter(([name]) => names.has(name)));
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

  private take(pod: Pod, container: Container, affinity: TopologyHint): void {
    const { state } = this.deps;
    const uid = uidOf(pod);
    const wanted = exclusiveMemory(pod, container);
    const numa = this.place(pod, wanted, affinity);
    const blocks = [...wanted].map(([type, bytes]): MemoryBlock => ({ nodes: nodesOf(numa), type, bytes }));
    for (const block of blocks) {
      const bytes = Math.max(0, block.bytes - this.reusable(uid, numa, block.type));
      takeMemory(state.nodes, { ...block, bytes });
    }
    this.handOn(pod, container, blocks);
    state.setBlocks(uid, container.name, blocks);
    this.shrinkInitial(pod, container, blocks);
  }

  /** The nodes to allocate on: those of the affinity, and more if they are not enough. */
  private place(pod: Pod, wanted: ReadonlyMap<string, number>, affinity: TopologyHint): NumaMask {
    const { nodes } = this.deps.state;
    const hint = affinity.numa === undefined ? this.anywhere(pod, wanted, affinity) : affinity;
    let numa = hint.numa ?? 0n;
    if (!hasEnough(nodes, numa, wanted)) {
      const wider = bestHint(this.possible(pod, wanted).filter((each) => isPartOf(numa, each.numa ?? 0n)));
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
    for (const block of state.blocks(uid, name) ?? []) giveMemory(state.nodes, block);
    state.delete(uid, name);
  }
}

/** The hints of what a container has already; none if that is not what it asks for. */
function knownHints(had: readonly MemoryBlock[], wanted: ReadonlyMap<string, number>): Hints {
  const isSame = had.length === wanted.size && had.every(({ type, bytes }) => wanted.get(type) === bytes);
  if (!isSame) return NONE;
  return new Map(had.map(({ type, nodes }) => [type, [{ numa: numaMask(nodes), isPreferred: true }]]));
}

function isInitial({ spec }: Pod, { name }: Container): boolean {
  return (spec.initContainers ?? []).some((container) => container.name === name && !isSidecar(container));
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid ?? "";
}
