import assert from "node:assert/strict";
import { test } from "node:test";
import { compareMasks, countNodes, hasNode, masksOf, nodesOf, numaMask } from "./topology.ts";

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
