import { type CpuSet, unionOf, without } from "../../model/cpu-set.ts";
import type { CpuLayout } from "./cpu-layout.ts";
import { FreeCpus } from "./free-cpus.ts";
import { NotEnoughCpus, type TakeRules, takeCpus } from "./take-cpus.ts";

/** How CPUs are spread over NUMA nodes. */
export interface DistributeRules extends TakeRules {
  /** CPUs are taken in groups of this size: the threads of a core, or 1. */
  readonly groupSize: number;
}

interface Choice {
  readonly nodes: readonly number[];
  /** Nodes that give one group more than the others. */
  readonly remainder: readonly number[];
  /** The lower, the more alike are the nodes' free CPUs afterwards. */
  readonly imbalance: number;
}

/** So many ways to share a request are judged, some 30 ms: all of them with up to 8 NUMA nodes, as in Kubernetes. */
const MOST_JUDGED = 20_000;

/**
 * Takes the same number of CPUs of each of as few NUMA nodes as possible, so that no worker of a parallel program waits
 * for one on a fuller node; packs them where that is not possible. Throws an Error if there are not enough. Pure.
 */
export function distributeCpus(
  { layout, available }: { readonly layout: CpuLayout; readonly available: CpuSet },
  wanted: number,
  rules: DistributeRules,
): CpuSet {
  const { groupSize } = rules;
  const packed: TakeRules = { isSpread: rules.isSpread === true };
  if (wanted % groupSize !== 0) return takeCpus({ layout, available }, wanted, packed);
  if (wanted > available.size) throw new NotEnoughCpus(wanted, available.size);
  if (wanted < 1) return new Set();
  const free = new FreeCpus(layout, available);
  const nodes = free.numas();
  const counts = new Map(nodes.map((node) => [node, free.count("numa", node)]));
  const { least, most } = nodesNeeded(layout, nodes.length, { wanted, groupSize });
  const budget = { judged: 0 };
  for (let size = least; size <= most && budget.judged < MOST_JUDGED; size++) {
    const choice = chooseNodes(counts, size, { wanted, groupSize, budget });
    if (choice === undefined) continue;
    const take = (from: CpuSet, count: number): CpuSet => takeCpus({ layout, available: from }, count, packed);
    return takeEvenly({ layout, available, take }, choice, { wanted, groupSize });
  }
  return takeCpus({ layout, available }, wanted, packed);
}

interface Request {
  readonly wanted: number;
  readonly groupSize: number;
}

interface Search extends Request {
  /** How many ways to share the request were judged. */
  readonly budget: { judged: number };
}

/** How many nodes the request can be spread over, by the mean size of a node. */
function nodesNeeded(layout: CpuLayout, available: number, { wanted, groupSize }: Request) {
  const groups = Math.ceil(layout.all.size / groupSize);
  const perNode = Math.ceil(groups / layout.groups.numa.size);
  const needed = Math.ceil(wanted / groupSize);
  return { least: Math.ceil(needed / perNode), most: Math.min(needed, available) };
}

/**
 * The combination of so many nodes that leaves the machine most balanced, of those that are judged; undefined if none
 * can share the request. From four nodes on, the original overwrites the best one while it judges others, and allocates
 * CPUs of another combination.
 */
function chooseNodes(counts: ReadonlyMap<number, number>, size: number, request: Search): Choice | undefined {
  const share = shareOf(size, request);
  const able = [...counts].filter(([, count]) => count >= share).map(([node]) => node);
  let best: Choice | undefined;
  for (const nodes of combinations(able, size)) {
    if (request.budget.judged >= MOST_JUDGED) break;
    const choice = judge(counts, nodes, request);
    if (choice !== undefined && (best === undefined || choice.imbalance < best.imbalance)) best = choice;
    if (best?.imbalance === 0) return best;
  }
  return best;
}

function shareOf(nodes: number, { wanted, groupSize }: Request): number {
  return Math.floor(wanted / nodes / groupSize) * groupSize;
}

function judge(counts: ReadonlyMap<number, number>, nodes: readonly number[], request: Search): Choice | undefined {
  const { wanted, groupSize, budget } = request;
  budget.judged++;
  const countOf = (node: number): number => counts.get(node) ?? 0;
  const inGroups = nodes.reduce((sum, node) => sum + Math.floor(countOf(node) / groupSize) * groupSize, 0);
  const share = shareOf(nodes.length, request);
  if (inGroups < wanted) return undefined;
  const left = new Map(counts);
  for (const node of nodes) left.set(node, countOf(node) - share);
  const rest = wanted - share * nodes.length;
  if (rest === 0) return { nodes, remainder: [], imbalance: deviation(left.values()) };
  const able = nodes.filter((node) => (left.get(node) ?? 0) >= groupSize);
  let best: Choice | undefined;
  for (let size = able.length; size >= 1; size--) {
    for (const remainder of combinations(able, size)) {
      if (budget.judged++ >= MOST_JUDGED) return best;
      const after = takeRest(left, remainder, { wanted: rest, groupSize });
      if (after === undefined) continue;
      const imbalance = deviation(after.values());
      if (best === undefined || imbalance < best.imbalance) best = { nodes, remainder, imbalance };
    }
  }
  return best;
}

/** What is left when groups are taken of these nodes in turn; undefined if they do not have so many. */
function takeRest(
  left: ReadonlyMap<number, number>,
  nodes: readonly number[],
  { wanted, groupSize }: Request,
): ReadonlyMap<number, number> | undefined {
  const after = new Map(left);
  let rest = wanted;
  while (rest > 0) {
    const before = rest;
    for (const node of nodes) {
      const count = after.get(node) ?? 0;
      if (rest === 0 || count < groupSize) continue;
      after.set(node, count - groupSize);
      rest -= groupSize;
    }
    if (rest === before) return undefined;
  }
  return after;
}

interface Source {
  readonly layout: CpuLayout;
  readonly available: CpuSet;
  readonly take: (from: CpuSet, count: number) => CpuSet;
}

function takeEvenly({ layout, available, take }: Source, { nodes, remainder }: Choice, request: Request): CpuSet {
  const { wanted, groupSize } = request;
  let taken: CpuSet = new Set();
  const freeOn = (node: number): CpuSet => {
    const all = layout.groups.numa.get(node) ?? new Set<number>();
    return without(new Set([...all].filter((cpu) => available.has(cpu))), taken);
  };
  const share = shareOf(nodes.length, request);
  for (const node of nodes) taken = unionOf(taken, take(freeOn(node), share));
  while (taken.size < wanted) {
    const before = taken.size;
    for (const node of remainder) {
      const free = freeOn(node);
      if (taken.size < wanted && free.size >= groupSize) taken = unionOf(taken, take(free, groupSize));
    }
    if (taken.size === before)
      throw new Error(`accounting error, not enough CPUs allocated, remaining: ${wanted - before}`);
  }
  return taken;
}

/** The standard deviation, in steps of a thousandth, as in Kubernetes. */
function deviation(values: Iterable<number>): number {
  const all = [...values];
  const round = (value: number): number => Math.round(value * 1000) / 1000;
  const mean = round(all.reduce((a, b) => a + b, 0) / all.length);
  return round(Math.sqrt(all.reduce((sum, value) => sum + (value - mean) ** 2, 0) / all.length));
}

function* combinations(all: readonly number[], size: number, from = 0): Generator<readonly number[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (let at = from; at <= all.length - size; at++) {
    for (const rest of combinations(all, size - 1, at + 1)) yield [all[at] ?? 0, ...rest];
  }
}
