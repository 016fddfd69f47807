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
  /**
   * Whether a pod of before a restart of the agent, of which nothing runs, may start with what it was allocated. Throws
   * an Error if not. Allocates nothing.
   */
  readmit?(pod: Pod): Readmission;
  /**
   * True if there is no allocation of a pod of before a restart of the agent, if it needs one: the record is lost, or
   * another policy was in force. Missing: nothing is ever allocated to a pod that runs.
   */
  isLackedBy?(pod: Pod): boolean;
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

/** What a pod of before a restart waits for, if it may not start yet. */
export type Readmission = { readonly waits: string } | undefined;

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
  /** Where in the list the set without its last node is, -1 for a single node, and where that node alone is. */
  readonly rest: number;
  readonly last: number;
}

/** All sets of so many nodes are compared at most: 65,535 sets for each container. */
export const MOST_COMPARED_NODES = 16;
const MOST_SETS = 2 ** MOST_COMPARED_NODES;

/** There are so many sets of NUMA nodes that comparing them would block the agent. */
export class TooManyNodesError extends Error {}

/** More sets than this are not kept: those of four lists of as many nodes as can be. */
const MOST_KEPT = 4 * MOST_SETS;
const kept = new Map<string, readonly NodeSet[]>();

/**
 * Returns every set of at least one of the nodes: the smaller ones first, each size in the order of the nodes. Throws a
 * TooManyNodesError for more than `MOST_COMPARED_NODES`.
 */
export function subsetsOf(nodes: readonly number[]): readonly NodeSet[] {
  if (nodes.length > MOST_COMPARED_NODES) {
    const what = `cannot compare all sets of ${nodes.length} NUMA nodes`;
    throw new TooManyNodesError(`${what}, at most ${MOST_COMPARED_NODES} are supported`);
  }
  const key = nodes.join();
  const known = kept.get(key);
  if (known !== undefined) return known;
  const sets = [...subsetsBySize(nodes)].flat();
  // A machine has one or two lists of nodes; only tests have more.
  const total = [...kept.values()].reduce((sum, { length }) => sum + length, sets.length);
  if (kept.size > 8 || total > MOST_KEPT) kept.clear();
  kept.set(key, sets);
  return sets;
}

/** The masks of `subsetsOf`. */
export function* masksOf(nodes: readonly number[]): Generator<NumaMask> {
  for (const { mask } of subsetsOf(nodes)) yield mask;
}

/** Returns for each set what its nodes add up to; `sets` are those of `subsetsOf`. */
export function sumsOver(sets: readonly NodeSet[], of: (node: number) => number): readonly number[] {
  const sums: number[] = [];
  for (const { nodes, rest, last } of sets) {
    sums.push(rest < 0 ? of(nodes[0] ?? 0) : (sums[rest] ?? 0) + (sums[last] ?? 0));
  }
  return sums;
}

/**
 * Yields the sets of one node, those of two, and so on, in the order of the nodes. Throws a TooManyNodesError when those
 * up to the next size are too many to compare.
 */
export function* subsetsBySize(nodes: readonly number[]): Generator<readonly NodeSet[]> {
  const bits = nodes.map((node) => numaMask([node]));
  let sets = nodes.map((node, at) => ({ mask: bits[at] ?? 0n, nodes: [node], rest: -1, last: at }));
  let before = 0;
  while (sets.length > 0) {
    yield sets;
    const larger: typeof sets = [];
    const most = MOST_SETS - before - sets.length;
    for (const [at, set] of sets.entries()) {
      for (let last = set.last + 1; last < nodes.length; last++) {
        if (larger.length >= most) {
          const what = `cannot compare sets of more than ${set.nodes.length} of ${nodes.length} NUMA nodes`;
          throw new TooManyNodesError(`${what}, there are too many`);
        }
        const mask = set.mask | (bits[last] ?? 0n);
        larger.push({ mask, nodes: [...set.nodes, nodes[last] ?? 0], rest: before + at, last });
      }
    }
    before += sets.length;
    sets = larger;
  }
}
