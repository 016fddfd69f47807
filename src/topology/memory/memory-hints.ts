import {
  hasNode,
  MOST_COMPARED_NODES,
  type NodeSet,
  type NumaMask,
  nodesOf,
  numaMask,
  subsetsBySize,
  subsetsOf,
  sumsOver,
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
 * with others. On a machine with too many nodes only sets of those with memory are compared. Throws a TooManyNodesError
 * if these are too many, too. Pure.
 */
export function memoryHints(nodes: NodeMap, request: MemoryRequest): readonly TopologyHint[] {
  const ids = sorted(nodes.keys());
  // Whatever a pod asks for: sums over all sets are for what there is.
  if (!isLarge(nodes, ids, request)) return [];
  const sets = subsetsOf(ids.length > MOST_COMPARED_NODES ? bearing(nodes, request) : ids);
  const wanted = [...request.wanted].map(([type, bytes]) => {
    const sums = (of: "free" | "allocatable"): readonly number[] =>
      sumsOver(sets, (id) => nodes.get(id)?.tables.get(type)?.[of] ?? 0);
    return { type, bytes, free: sums("free"), allocatable: sums("allocatable") };
  });
  let fewest: number | undefined;
  const found: NodeSet[] = [];
  for (const [at, set] of sets.entries()) {
    if (wanted.some(({ bytes, allocatable }) => (allocatable[at] ?? 0) < bytes)) continue;
    fewest ??= set.nodes.length;
    if (!isUsableGroup(nodes, set.nodes)) continue;
    const isShort = wanted.some(({ type, bytes, free }) => {
      const lacked = bytes - (free[at] ?? 0);
      return lacked > 0 && lacked > request.reusable(set.mask, type);
    });
    if (!isShort) found.push(set);
  }
  return found.map(({ mask, nodes: members }) => ({ numa: mask, isPreferred: members.length === fewest }));
}

/**
 * Returns the best of the hints that contain the nodes `within`: preferred, then narrow; undefined if there is none.
 * Compares sets only up to the size of the result, and no sets with nodes that have no memory, or that are used
 * otherwise: those are never better. Throws a TooManyNodesError if there are too many. Pure.
 */
export function bestMemoryHint(
  nodes: NodeMap,
  request: MemoryRequest,
  within: NumaMask = 0n,
): TopologyHint | undefined {
  const ids = bearing(nodes, request);
  const fewest = fewestNodes(nodes, ids, request);
  if (fewest === undefined) return undefined;
  let best: Members | undefined;
  const isBest = (set: Members): boolean =>
    (best === undefined || compareMembers(set, best) < 0) && fits(nodes, request, set);
  const fixed = nodesOf(within);
  const groups = [fixed, ...[...nodes.values()].map(({ cells }) => cells)];
  for (const members of groups) {
    const set = { mask: numaMask(members), nodes: members };
    if (members.length > 0 && isPartOf(within, set.mask) && isBest(set)) best = set;
  }
  const isIdle = (id: number): boolean => nodes.get(id)?.assignments === 0;
  const others = ids.filter((id) => isIdle(id) && !hasNode(within, id));
  const idle = [...fixed, ...others];
  const canGrow = fixed.every(isIdle) && fits(nodes, request, { mask: numaMask(idle), nodes: idle });
  for (const sets of canGrow ? subsetsBySize(others) : []) {
    for (const set of sets) {
      const larger = { mask: set.mask | within, nodes: [...fixed, ...set.nodes] };
      if (isBest(larger)) best = larger;
    }
    const size = fixed.length + (sets[0]?.nodes.length ?? 0);
    if (best !== undefined && best.nodes.length <= size) break;
  }
  return best && { numa: best.mask, isPreferred: best.nodes.length === fewest };
}

/** Of how many nodes the request needs the memory at least, on an idle machine; undefined if it has not so much. */
function fewestNodes(nodes: NodeMap, ids: readonly number[], request: MemoryRequest): number | undefined {
  if (!isLarge(nodes, ids, request)) return undefined;
  for (const sets of subsetsBySize(ids)) {
    if (sets.some((set) => isLarge(nodes, set.nodes, request))) return sets[0]?.nodes.length;
  }
  return undefined;
}

/** True if the nodes have the memory on an idle machine. */
function isLarge(nodes: NodeMap, members: readonly number[], { wanted }: MemoryRequest): boolean {
  return [...wanted].every(([type, bytes]) => sumOf(nodes, members, { type, of: "allocatable" }) >= bytes);
}

type Members = Pick<NodeSet, "mask" | "nodes">;

function compareMembers(a: Members, b: Members): number {
  return a.nodes.length - b.nodes.length || (a.mask < b.mask ? -1 : 1);
}

function fits(nodes: NodeMap, { wanted, reusable }: MemoryRequest, { mask, nodes: members }: Members): boolean {
  return (
    isUsableGroup(nodes, members) &&
    [...wanted].every(([type, bytes]) => {
      if (sumOf(nodes, members, { type, of: "allocatable" }) < bytes) return false;
      const lacked = bytes - sumOf(nodes, members, { type, of: "free" });
      return lacked <= 0 || lacked <= reusable(mask, type);
    })
  );
}

function sumOf(
  nodes: NodeMap,
  members: readonly number[],
  { type, of }: { readonly type: string; readonly of: "free" | "allocatable" },
): number {
  let sum = 0;
  for (const id of members) sum += nodes.get(id)?.tables.get(type)?.[of] ?? 0;
  return sum;
}

/** The nodes that have memory of a kind asked for, in ascending order. */
function bearing(nodes: NodeMap, { wanted }: MemoryRequest): readonly number[] {
  const has = (id: number): boolean =>
    [...wanted.keys()].some((type) => sumOf(nodes, [id], { type, of: "allocatable" }) > 0);
  return sorted(nodes.keys()).filter(has);
}

function sorted(ids: Iterable<number>): readonly number[] {
  return [...ids].sort((a, b) => a - b);
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

/** True if the first set is a part of the second. */
function isPartOf(part: NumaMask, whole: NumaMask): boolean {
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
