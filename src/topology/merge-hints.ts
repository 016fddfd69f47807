import { type Hints, type NumaMask, nodesOf, numaMask, type TopologyHint } from "../model/topology.ts";

/** How strictly the resources of a container have to be on the same NUMA nodes. */
export type TopologyPolicy = "none" | "best-effort" | "restricted" | "single-numa-node";

/** More NUMA nodes than this are not supported: sets of them are counted in 32 bits. */
export const MOST_NODES = 31;

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

/** A hint on the positions of `nodes` instead of their numbers; `ANY` names none. */
interface Compact {
  readonly mask: number;
  readonly isPreferred: boolean;
}

/** All bits set: what any other set of nodes has in common with it is that set. */
const ANY = -1;

/**
 * Merges the hints of all providers: one hint of each resource is chosen so that what they share is not empty; best if
 * all are preferred and name the same nodes. Which one wins among equals does not depend on the order of the providers.
 * Pure.
 */
export function mergeHints(all: readonly Hints[], rules: MergeRules): Merged {
  const space = new MaskSpace(rules.nodes);
  const lists = all.flatMap((hints) => listsOf(hints, space)).map((list) => allowed(list, rules));
  const order = rankBy(lists, rules);
  // Preferred results win, and are found without trying combinations, which are thousands with 8 nodes.
  const best = bestOf(preferredBy(lists), space, order) ?? bestOf(combinations(lists, space.all), space, order);
  const { mask, isPreferred } = best ?? { mask: space.all, isPreferred: false };
  // Resources on one node need no affinity if that may be any of them.
  const isAnywhere = rules.policy === "single-numa-node" && mask === space.all;
  const hint = { numa: isAnywhere ? undefined : space.expand(mask), isPreferred };
  return { hint, isAdmitted: rules.policy === "best-effort" || isPreferred };
}

function bestOf(
  results: Iterable<Compact>,
  space: MaskSpace,
  order: (a: Compact, b: Compact) => number,
): Compact | undefined {
  let best: Compact | undefined;
  for (const { mask, isPreferred } of results) {
    const merged = { mask: mask & space.all, isPreferred };
    if (merged.mask !== 0 && (best === undefined || order(merged, best) < 0)) best = merged;
  }
  return best;
}

/** Maps sets of NUMA nodes to 32-bit numbers and back. */
class MaskSpace {
  readonly all: number;
  private readonly positions: ReadonlyMap<number, number>;
  /** True if nodes are their own positions. */
  private readonly isPlain: boolean;

  constructor(private readonly nodes: readonly number[]) {
    this.positions = new Map(nodes.map((node, at) => [node, at]));
    this.isPlain = nodes.every((node, at) => node === at);
    this.all = nodes.reduce((mask, _node, at) => mask | (1 << at), 0);
  }

  compact(mask: NumaMask): number {
    if (this.isPlain) return Number(BigInt.asUintN(this.nodes.length, mask));
    return nodesOf(mask).reduce((sum, node) => {
      const at = this.positions.get(node);
      return at === undefined ? sum : sum | (1 << at);
    }, 0);
  }

  expand(mask: number): NumaMask {
    return numaMask(this.nodes.filter((_node, at) => (mask & (1 << at)) !== 0));
  }
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

/** The results that are preferred: nodes that a preferred hint of each list names, those apart that name none. */
function preferredBy(lists: readonly (readonly Compact[])[]): readonly Compact[] {
  const masks = lists.map((list) => new Set(list.filter(({ isPreferred }) => isPreferred).map(({ mask }) => mask)));
  const candidates = new Set([ANY, ...masks.flatMap((each) => [...each])]);
  const isCommon = (mask: number): boolean => masks.every((each) => each.has(mask) || each.has(ANY));
  return [...candidates].filter(isCommon).map((mask) => ({ mask, isPreferred: true }));
}

/**
 * Returns what choosing one hint of each list can lead to, each result once: the shared nodes, and whether all hints
 * were preferred and equal. A preferred result has the nodes of its hints, so that two with the same nodes go on alike.
 */
function combinations(lists: readonly (readonly Compact[])[], all: number): readonly Compact[] {
  let results: readonly Compact[] = [{ mask: ANY, isPreferred: true }];
  for (const list of lists) {
    const [preferred, others] = [new MaskBag(all), new MaskBag(all)];
    for (const before of results) {
      for (const hint of list) {
        const isEqual = hint.mask === ANY || before.mask === ANY || hint.mask === before.mask;
        const isPreferred = before.isPreferred && hint.isPreferred && isEqual;
        (isPreferred ? preferred : others).add(before.mask & hint.mask);
      }
    }
    results = [...preferred.results(true), ...others.results(false)];
  }
  return results;
}

/** Up to this mask a flag for each is cheaper than a set: 65,000 pairs of hints are usual with 8 NUMA nodes. */
const MOST_FLAGS = 0xffff;

/** Masks, each once. */
class MaskBag {
  private readonly flags: Uint8Array | undefined;
  private readonly others = new Set<number>();
  private readonly masks: number[] = [];

  constructor(all: number) {
    this.flags = all <= MOST_FLAGS ? new Uint8Array(all + 1) : undefined;
  }

  add(mask: number): void {
    if (this.flags === undefined || mask === ANY) {
      this.others.add(mask);
      return;
    }
    if (this.flags[mask] === 1) return;
    this.flags[mask] = 1;
    this.masks.push(mask);
  }

  results(isPreferred: boolean): readonly Compact[] {
    return [...this.masks, ...this.others].map((mask) => ({ mask, isPreferred }));
  }
}

/**
 * Orders results, the better first. Preferred ones before others, then those on fewer nodes; among those that are not
 * preferred, as many nodes as the resource that needs the most of them comes before fewer, and fewer before more.
 */
function rankBy(lists: readonly (readonly Compact[])[], rules: MergeRules): (a: Compact, b: Compact) => number {
  const needed = Math.max(0, ...lists.map(narrowest));
  const spread = (nodes: number): number => (nodes <= needed ? needed - nodes : MOST_NODES + nodes);
  const isClosest = rules.distances !== undefined && rules.policy !== "single-numa-node";
  return (a, b) => {
    if (a.isPreferred !== b.isPreferred) return a.isPreferred ? -1 : 1;
    const [ofA, ofB] = [count(a.mask), count(b.mask)];
    const byCount = a.isPreferred ? ofA - ofB : spread(ofA) - spread(ofB);
    if (byCount !== 0) return byCount;
    const byDistance = isClosest ? meanDistance(a.mask, rules) - meanDistance(b.mask, rules) : 0;
    return byDistance || a.mask - b.mask;
  };
}

/** The nodes that a resource needs at least. */
function narrowest(list: readonly Compact[]): number {
  const counts = list.filter(({ mask }) => mask !== ANY).map(({ mask }) => count(mask));
  return counts.length === 0 ? 0 : Math.min(...counts);
}

/** The mean distance between any two of the nodes, each to itself included. */
function meanDistance(mask: number, { distances = [] }: MergeRules): number {
  const positions = [...distances.keys()].filter((at) => (mask & (1 << at)) !== 0);
  const sum = positions.flatMap((a) => positions.map((b) => distances[a]?.[b] ?? 0)).reduce((x, y) => x + y, 0);
  return positions.length === 0 ? 0 : sum / positions.length ** 2;
}

function count(mask: number): number {
  let rest = mask;
  let bits = 0;
  for (; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}
