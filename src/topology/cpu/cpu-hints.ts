import type { CpuSet } from "../../model/cpu-set.ts";
import { type NodeSet, subsetsOf, type TopologyHint } from "../../model/topology.ts";
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
  const available = layout.count(request.available, "numa");
  const reusable = layout.count(request.reusable, "numa");
  let fewest = nodes.length;
  const found: NodeSet[] = [];
  for (const set of subsetsOf(nodes)) {
    let all = 0;
    let free = 0;
    let reused = 0;
    for (const node of set.nodes) {
      all += layout.groups.numa.get(node)?.size ?? 0;
      free += available.get(node) ?? 0;
      if (reusable.has(node)) reused++;
      free += reusable.get(node) ?? 0;
    }
    if (all >= request.wanted && set.nodes.length < fewest) fewest = set.nodes.length;
    // What the pod has already has to be on these nodes.
    if (reused === reusable.size && free >= request.wanted) found.push(set);
  }
  return found.map(({ mask, nodes: members }) => ({
    numa: mask,
    isPreferred: members.length === fewest || (request.alignsBySocket && isSocketAligned(layout, members, fewest)),
  }));
}

/** True if the nodes are on as few sockets as the request needs. */
function isSocketAligned(layout: CpuLayout, nodes: readonly number[], fewest: number): boolean {
  const perSocket = Math.floor(layout.groups.numa.size / Math.max(1, layout.groups.socket.size));
  if (perSocket === 0) return false;
  return layout.groupsOf(layout.cpusIn("numa", nodes), "socket").size === Math.ceil(fewest / perSocket);
}
