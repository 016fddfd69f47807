import {
  type Hints,
  hasNode,
  MOST_COMPARED_NODES,
  type NumaMask,
  numaMask,
  TooManyNodesError,
  type TopologyHint,
} from "../model/topology.ts";
import { intersections } from "./intersections.ts";

/** How strictly the resources of a container have to be on the same NUMA nodes. */
export type TopologyPolicy = "none" | "best-effort" | "restricted" | "single-numa-node";

/** More NUMA nodes than this are not supported: sets of them have 64 bits, as in Kubernetes. */
export const MOST_NODES = 64;

/** Nodes that hints may name, and one for all others: sets of them are 32-bit numbers. */
const MOST_POSITIONS = 31;

/** What the hints are merged by. */
export interface MergeRules {
  readonly policy: Exclude<TopologyPolicy, "none">;
  /** The NUMA nodes of the machine, at most `MOST_NODES`. */
  readonly nodes: readonly number[];
  /** Distances from each node to each other, in the order of `nodes`, if closer nodes are preferred. */
  readonly distances?: readonly (readonly number[])[] | undefined;
}

/** The affinity that suits all resources best, and whether the policy admits it. */
export interface Merged {
  readonly hint: TopologyHint;
  readonly isAdmitted: boolean;
}

/** A hint on positions (see `MaskSpace`) instead of the numbers of nodes; `ANY` names none. */
interface Compact {
  readonly mask: number;
  readonly isPreferred: boolean;
}

/** All bits set: what any other set of nodes has in common with it is that set. */
const ANY = -1;

/**
 * Merges the hints of all providers: one hint of each resource is chosen so that what they share is not empty; best if
 * all are preferred and name the same nodes. Which one wins among equals does not depend on the order of the providers.
 * Throws a TooManyNodesError if they name too many nodes. Pure.
 */
export function mergeHints(all: readonly Hints[], rules: MergeRules): Merged {
  const space = new MaskSpace(all, rules.nodes);
  const lists = all.flatMap((hints) => listsOf(hints, space)).map((list) => allowed(list, rules));
  const distance = distanceBy(rules, space);
  const needed = Math.max(0, ...lists.map(narrowest));
  // Preferred results win, and are found without trying combinations, which are thousands with 8 nodes.
  const preferred = bestOf(preferredBy(lists), space, { rank: (nodes) => nodes, distance });
  // Of the others, as many nodes as the resource that needs the most of them come before fewer, and fewer before more.
  const rank = (nodes: number): number => (nodes <= needed ? needed - nodes : MOST_NODES + nodes);
  const mask = preferred ?? bestOf(combinations(lists, space), space, { rank, distance }) ?? space.all;
  const isPreferred = preferred !== undefined;
  // Resources on one node need no affinity if that may be any of them.
  const isAnywhere = rules.policy === "single-numa-node" && mask === space.all;
  const hint = { numa: isAnywhere ? undefined : space.expand(mask), isPreferred };
  return { hint, isAdmitted: rules.policy === "best-effort" || isPreferred };
}

/** What sets of nodes are ordered by, the lower the better: their size, then the distance between their nodes. */
interface Order {
  rank(nodes: number): number;
  distance(mask: number): number;
}

function bestOf(masks: Iterable<number>, { all }: MaskSpace, { rank, distance }: Order): number | undefined {
  let best: number | undefined;
  for (const each of masks) {
    const mask = each & all;
    if (mask === 0) continue;
    const order =
      best === undefined ? -1 : rank(count(mask)) - rank(count(best)) || distance(mask) - distance(best) || mask - best;
    if (order < 0) best = mask;
  }
  return best;
}

/**
 * Maps sets of NUMA nodes to 32-bit numbers and back. On machines with many nodes there is a bit for each that some hint
 * names, and one for all others.
 */
class MaskSpace {
  readonly all: number;
  /** The node at each position. */
  readonly named: readonly number[];
  readonly size: number;
  /** True if nodes are their own positions. */
  private readonly isPlain: boolean;

  constructor(
    hints: readonly Hints[],
    private readonly nodes: readonly number[],
  ) {
    this.named = nodes.length <= MOST_COMPARED_NODES ? nodes : namedIn(hints, nodes);
    this.isPlain = this.named.every((node, at) => node === at);
    this.size = this.named.length + (this.named.length < nodes.length ? 1 : 0);
    if (this.size > MOST_POSITIONS) {
      throw new TooManyNodesError(`cannot merge hints that name ${this.named.length} NUMA nodes, there are too many`);
    }
    this.all = 2 ** this.size - 1;
  }

  compact(mask: NumaMask): number {
    if (this.isPlain) return Number(BigInt.asUintN(this.named.length, mask));
    const [low, high] = [Number(BigInt.asUintN(32, mask)), Number(mask >> 32n)];
    let compact = 0;
    for (const [at, node] of this.named.entries()) {
      const isSet = node < 32 ? (low >>> node) & 1 : (high >>> (node - 32)) & 1;
      if (isSet === 1) compact |= 1 << at;
    }
    return compact;
  }

  expand(mask: number): NumaMask {
    return numaMask(mask === this.all ? this.nodes : this.named.filter((_node, at) => (mask & (1 << at)) !== 0));
  }
}

/** The nodes that some hint names. */
function namedIn(all: readonly Hints[], nodes: readonly number[]): readonly number[] {
  let named = 0n;
  for (const hints of all) for (const list of hints.values()) for (const { numa = 0n } of list ?? []) named |= numa;
  return nodes.filter((node) => hasNode(named, node));
}

/** One list of hints for each resource. */
function listsOf(hints: Hints, space: MaskSpace): readonly (readonly Compact[])[] {
  if (hints.size === 0) return [[{ mask: ANY, isPreferred: true }]];
  return [...hints.values()].map((list) => {
    if (list === undefined) return [{ mask: ANY, isPreferred: true }];
    if (list.length === 0) return [{ mask: ANY, isPreferred: false }];
    return list.map(({ numa, isPreferred }) => ({ mask: numa === undefined ? ANY : space.compact(numa), isPreferred }));
  });
}

/** Drops what the policy never admits. */
function allowed(list: readonly Compact[], { policy }: MergeRules): readonly Compact[] {
  if (policy !== "single-numa-node") return list;
  return list.filter(({ mask, isPreferred }) => isPreferred && (mask === ANY || count(mask) === 1));
}

/** The sets of nodes that are preferred: those that a preferred hint of each list names, apart from hints that name none. */
function preferredBy(lists: readonly (readonly Compact[])[]): readonly number[] {
  const masks = lists.map((list) => new Set(list.filter(({ isPreferred }) => isPreferred).map(({ mask }) => mask)));
  const candidates = new Set([ANY, ...masks.flatMap((each) => [...each])]);
  return [...candidates].filter((mask) => masks.every((each) => each.has(mask) || each.has(ANY)));
}

/** Returns the nodes that are shared by one hint of each list, for each choice of hints. */
function combinations(lists: readonly (readonly Compact[])[], { all, size }: MaskSpace): Iterable<number> {
  let shared: ReadonlySet<number> = new Set([all]);
  for (const list of lists) shared = intersections([...shared], [...new Set(list.map(({ mask }) => mask & all))], size);
  return shared;
}

/** The nodes that a resource needs at least. */
function narrowest(list: readonly Compact[]): number {
  let fewest = Number.POSITIVE_INFINITY;
  for (const { mask } of list) if (mask !== ANY) fewest = Math.min(fewest, count(mask));
  return fewest === Number.POSITIVE_INFINITY ? 0 : fewest;
}

/** Returns the mean distance between any two of the nodes, each to itself included; 0 unless closer ones are preferred. */
function distanceBy({ policy, nodes, distances }: MergeRules, { named }: MaskSpace): Order["distance"] {
  if (distances === undefined || policy === "single-numa-node") return () => 0;
  const rows = named.map((node) => nodes.indexOf(node));
  const known = new Map<number, number>();
  return (mask) => {
    const before = known.get(mask);
    if (before !== undefined) return before;
    const members = rows.filter((_row, at) => (mask & (1 << at)) !== 0);
    let sum = 0;
    for (const a of members) for (const b of members) sum += distances[a]?.[b] ?? 0;
    const mean = members.length === 0 ? 0 : sum / members.length ** 2;
    known.set(mask, mean);
    return mean;
  };
}

function count(mask: number): number {
  let rest = mask;
  let bits = 0;
  for (; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}
