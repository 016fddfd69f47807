import type { Abortable } from "../lib/abort.ts";
import type { Container, Pod } from "./generated/types.ts";
import type { Rejection } from "./rejection.ts";

/** A set of NUMA nodes: bit n is node n. A value, so that equal sets are `===`; nodes are numbered from 0 to 63. */
export type NumaMask = bigint;

/** Where an amount of a resource could be allocated. */
export interface TopologyHint {
  /** Undefined: any node is as good as another. */
  readonly numa: NumaMask | undefined;
  /** True if fewer NUMA nodes could not hold the amount, even on an empty machine. */
  readonly isPreferred: boolean;
}

/** Hints by resource. Undefined: no preference; empty list: the resource cannot be allocated with any alignment. */
export type Hints = ReadonlyMap<string, readonly TopologyHint[] | undefined>;

/** One kind of resource (CPUs, memory, devices) that is allocated where the hints of all kinds together say. */
export interface HintProvider {
  readonly name: string;
  /** The possible allocations for one container, given what its pod already has. Has no effect. */
  hints(pod: Pod, container: Container): Hints;
  /** The possible allocations for all containers of the pod together. Has no effect. */
  podHints(pod: Pod): Hints;
  /**
   * Reserves for the container under the winning affinity, at once: until it is released nobody else gets it. Does
   * nothing if the container has its allocation already. Throws an Error if it cannot be had. After a rejection or an
   * error the caller calls `release`.
   */
  reserve(pod: Pod, container: Container, affinity: TopologyHint): Rejection | undefined;
  /**
   * The same for a pod with pod-level resources, whose containers divide what the pod gets. A provider without it
   * reserves container by container.
   */
  reservePod?(pod: Pod, affinity: TopologyHint): Rejection | undefined;
  /** Completes what is reserved for the pod: it is persisted, and plugins have agreed. Rejects with why it failed. */
  commit(pod: Pod, options: Abortable): Promise<void>;
  /** Why the pod can be allocated nothing on any machine; for messages. */
  problem?(pod: Pod): string | undefined;
  /** Releases what the containers of the pod have. Safe to repeat, and for a pod that has nothing. */
  release(uid: string): void;
  /** UIDs of pods that have something: what is left of removed pods is released. */
  held?(): Iterable<string>;
  /** How much of a resource each NUMA node has free for exclusive use, in the resource's unit; for messages. */
  free?(resource: string): ReadonlyMap<number, number>;
  /** How much of each resource the container (the pod if missing) needs; for messages. */
  needs?(pod: Pod, container: Container | undefined): ReadonlyMap<string, number>;
}

/** Any NUMA node: what there is without a topology policy. */
export const ANYWHERE: TopologyHint = { numa: undefined, isPreferred: false };

const NODES = 64;

/** Returns the set of these nodes. Throws a RangeError for a node past 63. */
export function numaMask(nodes: Iterable<number>): NumaMask {
  let mask = 0n;
  for (const node of nodes) {
    if (!Number.isInteger(node) || node < 0 || node >= NODES) throw new RangeError(`NUMA node ${node} is not in 0-63`);
    mask |= 1n << BigInt(node);
  }
  return mask;
}

/** Returns the nodes of a set in ascending order. */
export function nodesOf(mask: NumaMask): readonly number[] {
  const nodes: number[] = [];
  for (let rest = mask, node = 0; rest > 0n; rest >>= 1n, node++) if ((rest & 1n) === 1n) nodes.push(node);
  return nodes;
}

/** True if the set has the node. */
export function hasNode(mask: NumaMask, node: number): boolean {
  return ((mask >> BigInt(node)) & 1n) === 1n;
}

/** Returns how many nodes the set has. */
export function countNodes(mask: NumaMask): number {
  return nodesOf(mask).length;
}

/** Orders sets: fewer nodes first, then lower-numbered ones. */
export function compareMasks(a: NumaMask, b: NumaMask): number {
  return countNodes(a) - countNodes(b) || (a < b ? -1 : a > b ? 1 : 0);
}

/** A set of nodes and its members. */
export interface NodeSet {
  readonly mask: NumaMask;
  readonly nodes: readonly number[];
}

/** Sets of so many nodes or fewer are kept: 4096 sets. */
const MOST_KEPT = 12;
const kept = new Map<string, readonly NodeSet[]>();

/** Returns every set of at least one of the nodes: the smaller ones first, each size in the order of the nodes. */
export function subsetsOf(nodes: readonly number[]): Iterable<NodeSet> {
  if (nodes.length > MOST_KEPT) return subsets(nodes);
  const key = nodes.join();
  const known = kept.get(key) ?? [...subsets(nodes)];
  // A machine has one or two lists of nodes; only tests have more.
  if (kept.size > 8) kept.clear();
  kept.set(key, known);
  return known;
}

/** The masks of `subsetsOf`. */
export function* masksOf(nodes: readonly number[]): Generator<NumaMask> {
  for (const { mask } of subsetsOf(nodes)) yield mask;
}

function* subsets(nodes: readonly number[]): Generator<NodeSet> {
  for (let size = 1; size <= nodes.length; size++) {
    for (const chosen of choose(nodes, size)) yield { mask: numaMask(chosen), nodes: chosen };
  }
}

function* choose(nodes: readonly number[], size: number): Generator<readonly number[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (const [at, node] of nodes.entries()) {
    if (nodes.length - at < size) return;
    for (const rest of choose(nodes.slice(at + 1), size - 1)) yield [node, ...rest];
  }
}
