import assert from "node:assert/strict";
import { test } from "node:test";
import {
  compareMasks,
  countNodes,
  hasNode,
  masksOf,
  nodesOf,
  numaMask,
  subsetsBySize,
  subsetsOf,
  sumsOver,
  TooManyNodesError,
} from "./topology.ts";

test("a set of NUMA nodes is a value of up to 64 nodes", () => {
  const mask = numaMask([63, 0, 3]);
  assert.equal(mask, numaMask([0, 3, 63]));
  assert.deepEqual(nodesOf(mask), [0, 3, 63]);
  assert.deepEqual([hasNode(mask, 3), hasNode(mask, 4), countNodes(mask), countNodes(0n)], [true, false, 3, 0]);
  assert.throws(() => numaMask([64]), RangeError);
  assert.throws(() => numaMask([-1]), RangeError);
});

test("fewer nodes are narrower, then lower-numbered ones", () => {
  const masks = [numaMask([0, 1]), numaMask([2]), numaMask([0, 2]), numaMask([1])];
  assert.deepEqual(masks.sort(compareMasks).map(nodesOf), [[1], [2], [0, 1], [0, 2]]);
});

test("sets are enumerated by their size, each once", () => {
  assert.deepEqual([...masksOf([0, 2, 5])].map(nodesOf), [[0], [2], [5], [0, 2], [0, 5], [2, 5], [0, 2, 5]]);
  assert.equal(new Set(masksOf([0, 1, 2, 3, 4, 5, 6, 7])).size, 255);
});

test("what the nodes of each set add up to follows from smaller sets", () => {
  let reads = 0;
  const sums = sumsOver(subsetsOf([1, 10, 40]), (node) => {
    reads++;
    return node;
  });
  assert.deepEqual(sums, [1, 10, 40, 11, 41, 50, 51]);
  assert.equal(reads, 3);
});

test("sets of more than 16 nodes are not enumerated", () => {
  const nodes = Array.from({ length: 17 }, (_, at) => at);
  assert.equal(subsetsOf(nodes.slice(1)).length, 65_535);
  const why = "cannot compare all sets of 17 NUMA nodes, at most 16 are supported";
  assert.throws(() => subsetsOf(nodes), new TooManyNodesError(why));
});

test("sets of many nodes are enumerated as long as they are few", () => {
  const nodes = Array.from({ length: 40 }, (_, at) => at);
  const sizes: number[] = [];
  const enumerate = (): void => {
    for (const sets of subsetsBySize(nodes)) sizes.push(sets.length);
  };
  const why = "cannot compare sets of more than 3 of 40 NUMA nodes, there are too many";
  assert.throws(enumerate, new TooManyNodesError(why));
  assert.deepEqual(sizes, [40, 780, 9880]);
});
