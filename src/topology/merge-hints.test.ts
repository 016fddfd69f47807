import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { countNodes, type Hints, type NumaMask, nodesOf, numaMask, type TopologyHint } from "../model/topology.ts";
import { type MergeRules, mergeHints } from "./merge-hints.ts";

// Hints are written as the numbers of their nodes, `!` for preferred: "0! 01" is two hints, "any" one that names no node,
// "-" a resource that cannot be aligned, "none" one without a preference. A provider is a list of resources.

const FOUR = [
  [10, 11, 12, 12],
  [11, 10, 12, 12],
  [12, 12, 10, 11],
  [12, 12, 11, 10],
];
/** No two pairs of nodes are alike. */
const UNEVEN = [
  [10, 40, 31, 22],
  [40, 11, 15, 27],
  [31, 15, 12, 19],
  [22, 27, 19, 13],
];
const EIGHT = [
  ...FOUR.map((row) => [...row, 30, 30, 30, 30]),
  [30, 30, 30, 30, 10, 11, 12, 12],
  [30, 30, 30, 30, 11, 10, 12, 12],
  [30, 30, 30, 30, 12, 12, 10, 11],
  [30, 30, 30, 30, 12, 12, 13, 10],
];
const four = { nodes: [0, 1, 2, 3] };
const closest = { nodes: [0, 1, 2, 3, 4, 5, 6, 7], distances: EIGHT };

function hint(text: string, nodes: readonly number[] = []): TopologyHint {
  const [, names = "", mark] = /^(\w+)(!?)$/.exec(text) ?? [];
  if (names === "any") return { numa: undefined, isPreferred: mark === "!" };
  const numa = numaMask(names === "all" ? nodes : names.split("").map(Number));
  return { numa, isPreferred: mark === "!" };
}

function hintsOf(resources: readonly string[]): Hints {
  const lists = resources.map((text) => {
    if (text === "none") return undefined;
    return text === "-" ? [] : text.split(" ").map((each) => hint(each));
  });
  return new Map(lists.map((list, at) => [`resource-${at}`, list]));
}

type Row = readonly [given: readonly (readonly string[])[], want: string];

function check(rows: readonly Row[], rules: MergeRules): void {
  for (const [given, want] of rows) {
    test(`${JSON.stringify(given)} is ${want}`, () => {
      assert.deepEqual(mergeHints(given.map(hintsOf), rules).hint, hint(want, rules.nodes));
    });
  }
}

const COMMON: readonly Row[] = [
  [[["0!"], ["0!"]], "0!"],
  [[["1!"], ["1!"]], "1!"],
  [[[], ["0!"]], "0!"],
  [[[], ["1!"]], "1!"],
  [[["0! 1!"], ["0!"]], "0!"],
  [[["0! 1!"], ["1!"]], "1!"],
  [[["0! 1!"], ["0! 01"]], "0!"],
  [[["1! 01"], ["0! 1! 01"]], "1!"],
  [[["1! 01", "0! 1! 01"]], "1!"],
];
const BEST_EFFORT: readonly Row[] = [
  [[["01! 02!"], ["01! 02!"]], "01!"],
  [[], "all!"],
  [[[]], "all!"],
  [[["none"]], "all!"],
  [[["-"]], "all"],
  [[["-"], ["0!"]], "0"],
  [[["any!"]], "all!"],
  [[["any"]], "all"],
  [[["0!"], ["1!"]], "all"],
  [[["0!"], ["0"]], "0"],
  [[["1!"], ["1"]], "1"],
  [[["0!"], ["01!"]], "0"],
  [[["0! 1!"], ["01"]], "0"],
  [[["1!"], ["01!"]], "1"],
  [[["0123 01"], ["01"]], "01"],
  [[["0123 01"], ["03"]], "03"],
  [[["0123 01"], ["12"]], "12"],
  [[["0123 01"], ["23"]], "23"],
];
const NARROWEST: readonly Row[] = [
  [[["0123 01"], ["12 23"]], "12"],
  [[["0123 01"], ["123 12 13 23"]], "12"],
];
const CLOSEST: readonly Row[] = [
  [[["04! 02!"], ["04! 02!"]], "02!"],
  [[["4! 02!"], ["4! 02!"]], "4!"],
  [[["0123 01"], ["12 23"]], "23"],
  [[["0123 01"], ["123 12 13 23"]], "23"],
];
const SINGLE: readonly Row[] = [
  [[], "any!"],
  [[[]], "any!"],
  [[["none"]], "any!"],
  [[["-"]], "any"],
  [[["any!"]], "any!"],
  [[["any"]], "any"],
  [[["0!"], ["1!"]], "any"],
  [[["0!"], ["0"]], "any"],
  [[["1!"], ["1"]], "any"],
  [[["0! 1!"], ["01"]], "any"],
  [[["01!", "0! 1! 01"]], "any"],
  [[["0! 1! 01"], []], "0!"],
];

for (const policy of ["best-effort", "restricted"] as const) {
  describe(`hints merged as ${policy}`, () => check([...COMMON, ...BEST_EFFORT, ...NARROWEST], { policy, ...four }));
  describe(`hints merged as ${policy} with the closest nodes preferred`, () =>
    check([...COMMON, ...BEST_EFFORT.slice(1), ...CLOSEST], { policy, ...closest }));
}
describe("hints merged as single-numa-node", () =>
  check([...COMMON, ...SINGLE], { policy: "single-numa-node", ...four }));

const GAPS: readonly Row[] = [
  [[["0!"], ["0! 8!"]], "0!"],
  [[["8!"], ["0! 8!"]], "8!"],
  [[["8!"], ["8! 08"]], "8!"],
  [[["08!"], ["08!"]], "08!"],
  [[["0!"], ["8!"]], "all"],
  [[["8"], ["08"]], "8"],
  [[], "all!"],
  [[["-"]], "all"],
];
describe("hints on NUMA nodes that are not numbered in a row", () =>
  check(GAPS, { policy: "restricted", nodes: [0, 8] }));

const seventeen = { policy: "restricted", nodes: Array.from({ length: 17 }, (_, at) => at) } as const;
describe("hints on many NUMA nodes", () =>
  check(
    [
      [[["0! 1!"], ["1!"]], "1!"],
      [[["0!"], ["01!"]], "0"],
      [[["0123 01"], ["12"]], "12"],
      [[["0!"], ["1!"]], "all"],
      // Each needs one node, and what both can have is wider: as narrow as it can be then.
      [[["0 12 123"], ["4 123"]], "12"],
    ],
    seventeen,
  ));

test("best-effort admits every result, the others only a preferred one", () => {
  const admitted = (policy: MergeRules["policy"], resources: readonly string[]): boolean =>
    mergeHints([hintsOf(resources)], { policy, ...four }).isAdmitted;
  assert.deepEqual([admitted("best-effort", ["0"]), admitted("best-effort", ["-"])], [true, true]);
  assert.deepEqual([admitted("restricted", ["0"]), admitted("restricted", ["01!"])], [false, true]);
  assert.deepEqual([admitted("single-numa-node", ["01!"]), admitted("single-numa-node", ["0!"])], [false, true]);
});

/** Every choice of one hint of each list, judged one after the other: slow, and plainly right. */
function byTrial(all: readonly Hints[], { policy, nodes, distances }: MergeRules): TopologyHint {
  const lists = all.flatMap((hints) => [...hints.values()].map((list) => list ?? [hint("any!")]));
  const everything = numaMask(nodes);
  let permutations: (readonly TopologyHint[])[] = [[]];
  for (const list of lists) permutations = permutations.flatMap((so) => list.map((each) => [...so, each]));
  const counts = lists.map((list) =>
    Math.min(...list.flatMap(({ numa }) => (numa === undefined ? [] : countNodes(numa)))),
  );
  const needed = Math.max(0, ...counts.filter(Number.isFinite));
  const mean = (mask: NumaMask): number => {
    const pairs = nodesOf(mask).flatMap((a) => nodesOf(mask).map((b) => distances?.[a]?.[b] ?? 0));
    return pairs.reduce((x, y) => x + y, 0) / pairs.length;
  };
  const key = ({ numa = 0n, isPreferred }: TopologyHint): readonly (number | bigint)[] => {
    const size = countNodes(numa);
    const bySize = isPreferred ? size : size <= needed ? needed - size : 100 + size;
    return [
      isPreferred ? 0 : 1,
      bySize,
      distances === undefined || policy === "single-numa-node" ? 0 : mean(numa),
      numa,
    ];
  };
  const isBefore = (a: TopologyHint, b: TopologyHint): boolean => {
    const [ka, kb] = [key(a), key(b)];
    const at = ka.findIndex((part, index) => part !== kb[index]);
    return at >= 0 && (ka[at] ?? 0) < (kb[at] ?? 0);
  };
  let best: TopologyHint | undefined;
  for (const chosen of permutations) {
    const masks = chosen.flatMap(({ numa }) => (numa === undefined ? [] : [numa]));
    const numa = masks.reduce((a, b) => a & b, everything);
    const merged = { numa, isPreferred: chosen.every((each) => each.isPreferred) && new Set(masks).size <= 1 };
    if (numa !== 0n && (best === undefined || isBefore(merged, best))) best = merged;
  }
  return best ?? { numa: everything, isPreferred: false };
}

test("the result is the best of all choices of one hint of each resource", () => {
  const anyHint = fc.record({
    numa: fc.oneof(fc.constant(undefined), fc.integer({ min: 1, max: 15 }).map(BigInt)),
    isPreferred: fc.boolean(),
  });
  const provider = fc.array(fc.array(anyHint, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 2 });
  fc.assert(
    fc.property(fc.array(provider, { maxLength: 2 }), fc.constantFrom(undefined, FOUR, UNEVEN), (given, distances) => {
      const all = given.map((lists) => new Map(lists.map((list, at) => [`resource-${at}`, list])));
      const rules = { policy: "best-effort", ...four, distances } as const;
      assert.deepEqual(mergeHints(all, rules).hint, byTrial(all, rules));
    }),
  );
});
