import {
  compareMasks,
  hasNode,
  type NodeSet,
  type NumaMask,
  nodesOf,
  subsetsOf,
  type TopologyHint,
} from "../../model/topology.ts";
import type { NodeMap, NodeMemory } from "./memory-state.ts";

/** A request for memory, in bytes by kind. */
export interface MemoryRequest {
  readonly wanted: ReadonlyMap<string, number>;
  /** Bytes on these nodes that containers of the pod have handed on. */
  reusable(mask: NumaMask, type: string): number;
}

/**
 * Returns the sets of NUMA nodes that have the memory, the same ones for each kind; preferred are those of as few nodes
 * as the request needs on an idle machine. A node belongs to one group only: it is never used both alone and together
 * with others. Pure.
 */
export function memoryHints(nodes: NodeMap, request: MemoryRequest): readonly TopologyHint[] {
  const ids = [...nodes.keys()].sort((a, b) => a - b);
  let fewest = ids.length;
  const found: NodeSet[] = [];
  for (const set of subsetsOf(ids)) {
    const { mask } = set;
    const members = set.nodes.flatMap((id) => nodes.get(id) ?? []);
    const sum = (type: string, field: "free" | "allocatable"): number =>
      members.reduce((all, { tables }) => all + (tables.get(type)?.[field] ?? 0), 0);
    const wanted = [...request.wanted];
    if (wanted.some(([type, bytes]) => sum(type, "allocatable") < bytes)) continue;
    fewest = Math.min(fewest, members.length);
    if (!isUsableGroup(members, set.nodes)) continue;
    if (wanted.some(([type, bytes]) => sum(type, "free") + request.reusable(mask, type) < bytes)) continue;
    found.push(set);
  }
  return found.map(({ mask, nodes: chosen }) => ({ numa: mask, isPreferred: chosen.length === fewest }));
}

/** True if the free memory of the nodes is enough. */
export function hasEnough(nodes: NodeMap, mask: NumaMask, wanted: ReadonlyMap<string, number>): boolean {
  const members = membersOf(nodes, mask);
  return [...wanted].every(
    ([type, bytes]) => members.reduce((all, { tables }) => all + (tables.get(type)?.free ?? 0), 0) >= bytes,
  );
}

/** True if several nodes would be used together of which one is used otherwise already. */
export function breaksGroup(nodes: NodeMap, mask: NumaMask): boolean {
  return isUsedOtherwise(membersOf(nodes, mask), nodesOf(mask));
}

/** The best of the hints: preferred, then narrow; undefined if there is none. */
export function bestHint(hints: readonly TopologyHint[]): TopologyHint | undefined {
  return [...hints].sort(
    (a, b) => Number(b.isPreferred) - Number(a.isPreferred) || compareMasks(a.numa ?? 0n, b.numa ?? 0n),
  )[0];
}

/** True if the first set is a part of the second. */
export function isPartOf(part: NumaMask, whole: NumaMask): boolean {
  return nodesOf(part).every((node) => hasNode(whole, node));
}

function isUsableGroup(members: readonly NodeMemory[], ids: readonly number[]): boolean {
  return ids.length === 1 ? (members[0]?.cells.length ?? 0) <= 1 : !isUsedOtherwise(members, ids);
}

function isUsedOtherwise(members: readonly NodeMemory[], ids: readonly number[]): boolean {
  return ids.length > 1 && members.some(({ assignments, cells }) => assignments > 0 && !isSameGroup(cells, ids));
}

function membersOf(nodes: NodeMap, mask: NumaMask): readonly NodeMemory[] {
  return nodesOf(mask).flatMap((id) => nodes.get(id) ?? []);
}

function isSameGroup(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((id) => b.includes(id));
}
