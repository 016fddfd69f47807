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
  const wanted = [...request.wanted].map(([type, bytes]) => ({ type, bytes, free: 0, allocatable: 0 }));
  let fewest = ids.length;
  const found: NodeSet[] = [];
  // Plain loops: with 8 nodes there are 255 sets, looked at several times for each container.
  for (const set of subsetsOf(ids)) {
    for (const need of wanted) {
      need.free = 0;
      need.allocatable = 0;
      for (const id of set.nodes) {
        const table = nodes.get(id)?.tables.get(need.type);
        if (table === undefined) continue;
        need.free += table.free;
        need.allocatable += table.allocatable;
      }
    }
    if (wanted.some(({ bytes, allocatable }) => allocatable < bytes)) continue;
    if (set.nodes.length < fewest) fewest = set.nodes.length;
    if (!isUsableGroup(nodes, set.nodes)) continue;
    if (wanted.some(({ type, bytes, free }) => free + request.reusable(set.mask, type) < bytes)) continue;
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
  return isUsedOtherwise(nodes, nodesOf(mask));
}

/** True if one node would be used alone that is used together with others. */
export function splitsGroup(nodes: NodeMap, mask: NumaMask): boolean {
  const ids = nodesOf(mask);
  return ids.length === 1 && !isUsableGroup(nodes, ids);
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

function isUsableGroup(nodes: NodeMap, ids: readonly number[]): boolean {
  const [first] = ids;
  if (ids.length > 1 || first === undefined) return !isUsedOtherwise(nodes, ids);
  return (nodes.get(first)?.cells.length ?? 0) <= 1;
}

function isUsedOtherwise(nodes: NodeMap, ids: readonly number[]): boolean {
  if (ids.length <= 1) return false;
  for (const id of ids) {
    const node = nodes.get(id);
    if (node !== undefined && node.assignments > 0 && !isSameGroup(node.cells, ids)) return true;
  }
  return false;
}

function membersOf(nodes: NodeMap, mask: NumaMask): readonly NodeMemory[] {
  return nodesOf(mask).flatMap((id) => nodes.get(id) ?? []);
}

function isSameGroup(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((id) => b.includes(id));
}
