import { countNodes, masksOf, type NumaMask, numaMask, type TopologyHint } from "../model/topology.ts";
import type { MaskCounts } from "./device-masks.ts";

/** What the hints for an amount of one resource depend on. */
export interface HintFacts {
  /** All devices of the resource, healthy or not. */
  readonly devices: MaskCounts;
  readonly available: MaskCounts;
  /** Those of earlier init containers: they are part of each possible allocation. */
  readonly reusable: MaskCounts;
  readonly amount: number;
  /** The NUMA nodes of the machine. */
  readonly nodes: readonly number[];
}

/** True if some device is attached to a NUMA node: only then alignment matters. */
export function hasTopology(devices: MaskCounts): boolean {
  for (const mask of devices.keys()) if (mask !== 0n) return true;
  return false;
}

/**
 * Returns the sets of NUMA nodes that could hold the amount. Those are preferred that are as small as the smallest set
 * that could hold it on an idle machine. Devices are counted by their set of nodes: there are few of these, and may be
 * thousands of devices. Pure.
 */
export function deviceHints({ devices, available, reusable, amount, nodes }: HintFacts): readonly TopologyHint[] {
  const known = nodes.filter((node) => [...devices.keys()].some((mask) => (mask & numaMask([node])) !== 0n));
  const bearing = known.length > 0 ? known : nodes;
  let smallest = bearing.length;
  const possible: NumaMask[] = [];
  for (const mask of masksOf(bearing)) {
    if (countIn(mask, devices) >= amount) smallest = Math.min(smallest, countNodes(mask));
    // Reused devices that have nodes must all be inside; those that have none fit anywhere, but count for nothing.
    const isOutside = [...reusable.keys()].some((of) => of !== 0n && (of & mask) === 0n);
    if (!isOutside && countIn(mask, available) + countIn(mask, reusable) >= amount) possible.push(mask);
  }
  return possible.map((numa) => ({ numa, isPreferred: countNodes(numa) === smallest }));
}

function countIn(mask: NumaMask, counts: MaskCounts): number {
  let count = 0;
  for (const [of, number] of counts) if ((of & mask) !== 0n) count += number;
  return count;
}
