import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { compareMasks, hasNode, nodesOf, numaMask, type TopologyHint } from "../../model/topology.ts";
import { bestMemoryHint, type MemoryRequest, memoryHints } from "./memory-hints.ts";
import { type MemoryTable, type NodeMap, takeMemory } from "./memory-state.ts";

/** NUMA nodes of so much memory each; 0 is none. */
function nodesOfSizes(sizes: readonly number[]) {
  const table = (size: number): MemoryTable => {
    return { total: size, systemReserved: 0, allocatable: size, reserved: 0, free: size };
  };
  const reads = { tables: 0 };
  const nodes: NodeMap = new Map(
    sizes.map((size, id) => {
      const tables = new Map([["memory", table(size)]]);
      const node = {
        assignments: 0,
        cells: [id] as readonly number[],
        get tables() {
          reads.tables++;
          return tables;
        },
      };
      return [id, node] as const;
    }),
  );
  return { nodes, reads };
}

function asking(bytes: number, more: Readonly<Record<string, number>> = {}): MemoryRequest {
  return { wanted: new Map([["memory", bytes], ...Object.entries(more)]), reusable: () => 0 };
}

const shown = (hint: TopologyHint | undefined): string | undefined =>
  hint && `${nodesOf(hint.numa ?? 0n).join()}${hint.isPreferred ? "!" : ""}`;

describe("the best set of NUMA nodes for memory", () => {
  const cases = [
    { name: "is the first of one node", sizes: [4, 4, 4], want: "0!" },
    { name: "skips nodes that have less", sizes: [1, 0, 4], want: "2!" },
    { name: "is the lowest of as few nodes as possible", sizes: [2, 1, 2, 3], want: "0,2!" },
    { name: "may be one that is used alone", sizes: [8, 1], used: [[[0], 3]], want: "0!" },
    { name: "is no node of a group", sizes: [8, 8, 8], used: [[[0, 1], 3]], want: "2!" },
    { name: "may be a group", sizes: [8, 8, 2], used: [[[0, 1], 3]], want: "0,1" },
    { name: "may be a group with a node without memory", sizes: [8, 0, 2], used: [[[0, 1], 3]], want: "0,1" },
    { name: "is wider than on an idle machine", sizes: [4, 3, 3], used: [[[0], 3]], want: "1,2" },
    { name: "contains a node without memory if it has to", sizes: [4, 0, 4], within: [1], want: "0,1" },
    {
      name: "contains no node that is used otherwise",
      sizes: [4, 0, 4],
      used: [[[1], 0]],
      within: [1],
      want: undefined,
    },
    { name: "is none if all are too small", sizes: [1, 1, 1], want: undefined },
  ] as const;
  for (const { name, sizes, want, ...more } of cases) {
    test(name, () => {
      const { nodes } = nodesOfSizes(sizes);
      for (const [cells, bytes] of "used" in more ? more.used : [])
        takeMemory(nodes, { nodes: cells, type: "memory", bytes });
      const within = numaMask("within" in more ? more.within : []);
      const all = memoryHints(nodes, asking(4)).filter(({ numa = 0n }) =>
        nodesOf(within).every((id) => hasNode(numa, id)),
      );
      const [first] = [...all].sort(
        (a, b) => Number(b.isPreferred) - Number(a.isPreferred) || compareMasks(a.numa ?? 0n, b.numa ?? 0n),
      );
      assert.equal(shown(bestMemoryHint(nodes, asking(4), within)), want);
      assert.equal(shown(first), want, "of all hints");
    });
  }

  test("is found without looking at larger sets", () => {
    const { nodes, reads } = nodesOfSizes(Array.from({ length: 16 }, (_, id) => id));
    assert.equal(shown(bestMemoryHint(nodes, asking(15))), "15!");
    assert.ok(reads.tables < 200, `${reads.tables} reads`);
  });

  test("is not sought for thousands of kinds of memory that no node has", () => {
    const sizes = Array.from({ length: 2000 }, (_, at) => [`hugepages-${at}Ki`, 1024 * at + 1024] as const);
    const { nodes, reads } = nodesOfSizes([8, 8, 8, 8, 8, 8, 8, 8]);
    const request = asking(1, Object.fromEntries(sizes));
    assert.deepEqual([memoryHints(nodes, request), bestMemoryHint(nodes, request)], [[], undefined]);
    assert.ok(reads.tables < 100, `${reads.tables} reads`);
  });
});
