import { type CpuSet, unionOf } from "../../model/cpu-set.ts";
import { subsetsOf, sumsOver, type TopologyHint } from "../../model/topology.ts";
import type { CpuLayout } from "./cpu-layout.ts";

/** What a request for CPUs is judged by. */
export interface CpuRequest {
  readonly wanted: number;
  readonly available: CpuSet;
  /** CPUs that the pod has already and that have to be part of the allocation. */
  readonly reusable: CpuSet;
  readonly alignsBySocket: boolean;
}

/**
 * Returns the sets of NUMA nodes that have the CPUs; preferred are those of as few nodes as the request needs on an empty
 * machine. Pure.
 */
export function cpuHints(layout: CpuLayout, request: CpuRequest): readonly TopologyHint[] {
  const nodes = [...layout.groups.numa.keys()];
  const sets = subsetsOf(nodes);
  const available = layout.count(request.available, "numa");
  const reusable = layout.count(request.reusable, "numa");
  const all = sumsOver(sets, (node) => layout.groups.numa.get(node)?.size ?? 0);
  const free = sumsOver(sets, (node) => (available.get(node) ?? 0) + (reusable.get(node) ?? 0));
  const reused = sumsOver(sets, (node) => (reusable.has(node) ? 1 : 0));
  const fewest = sets.find((_set, at) => (all[at] ?? 0) >= request.wanted)?.nodes.length ?? nodes.length;
  // What the pod has already has to be on these nodes.
  const found = sets.filter((_set, at) => reused[at] === reusable.size && (free[at] ?? 0) >= request.wanted);
  const isAligned = request.alignsBySocket ? socketAlignment(layout, fewest) : () => false;
  return found.map(({ mask, nodes: members }) => ({
    numa: mask,
    isPreferred: members.length === fewest || isAligned(members),
  }));
}

/** Returns what is true for nodes that are on as few sockets as so many nodes need. */
function socketAlignment(layout: CpuLayout, fewest: number): (nodes: readonly number[]) => boolean {
  const perSocket = Math.floor(layout.groups.numa.size / Math.max(1, layout.groups.socket.size));
  if (perSocket === 0) return () => false;
  const sockets = new Map([...layout.groups.numa].map(([node, cpus]) => [node, layout.groupsOf(cpus, "socket")]));
  const needed = Math.ceil(fewest / perSocket);
  return (nodes) => unionOf(...nodes.map((node) => sockets.get(node) ?? [])).size === needed;
}
