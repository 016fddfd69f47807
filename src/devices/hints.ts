import { countNodes, masksOf, type NumaMask, numaMask, type TopologyHint } from "../model/topology.ts";
import type { Device } from "./device.ts";

/** What the hints for an amount of one resource depend on. */
export interface HintFacts {
  /** All devices of the resource, healthy or not. */
  readonly devices: ReadonlyMap<string, Device>;
  readonly available: Iterable<string>;
  /** Ids of earlier init containers: they are part of each possible allocation. */
  readonly reusable: readonly string[];
  readonly amount: number;
  /** The NUMA nodes of the machine. */
  readonly nodes: readonly number[];
}

/** True if some device is attached to a NUMA node: only then alignment matters. */
export function hasTopology(devices: ReadonlyMap<string, Device>): boolean {
  for (const { nodes } of devices.values()) if (nodes.length > 0) return true;
  return false;
}

/**
 * Returns the sets of NUMA nodes that could hold the amount. Those are preferred that are as small as the smallest set
 * that could hold it on an idle machine. Devices are counted by their set of nodes: there are few of these, and may be
 * thousands of devices. Pure.
 */
export function deviceHints(facts: HintFacts): readonly TopologyHint[] {
  const { devices, amount } = facts;
  const groups = countByMask(devices.keys(), devices);
  const free = countByMask(facts.available, devices);
  const reused = countByMask(facts.reusable, devices);
  const known = facts.nodes.filter((node) => [...groups.keys()].some((mask) => (mask & numaMask([node])) !== 0n));
  const bearing = known.length > 0 ? known : facts.nodes;
  let smallest = bearing.length;
  const possible: NumaMask[] = [];
  for (const mask of masksOf(bearing)) {
    if (countIn(mask, groups) >= amount) smallest = Math.min(smallest, countNodes(mask));
    // Reused devices that have nodes must all be inside; those that have none fit anywhere, but count for nothing.
    const isOutside = [...reused.keys()].some((of) => of !== 0n && (of & mask) === 0n);
    if (!isOutside && countIn(mask, free) + countIn(mask, reused) >= amount) possible.push(mask);
  }
  return possible.map((numa) => ({ numa, isPreferred: countNodes(numa) === smallest }));
}

function countByMask(ids: Iterable<string>, devices: ReadonlyMap<string, Device>): ReadonlyMap<NumaMask, number> {
  const masks = new Map<string, NumaMask>();
  const counts = new Map<NumaMask, number>();
  for (const id of ids) {
    const nodes = devices.get(id)?.nodes ?? [];
    const key = nodes.join();
    const mask = masks.get(key) ?? numaMask(nodes);
    masks.set(key, mask);
    counts.set(mask, (counts.get(mask) ?? 0) + 1);
  }
  return counts;
}

function countIn(mask: NumaMask, counts: ReadonlyMap<NumaMask, number>): number {
  let count = 0;
  for (const [of, number] of counts) if ((of & mask) !== 0n) count += number;
  return count;
}
