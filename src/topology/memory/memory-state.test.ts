import assert from "node:assert/strict";
import { test } from "node:test";
import { giveMemory, MemoryState, type NodeMap, takeMemory } from "./memory-state.ts";

const TYPE = "memory";

/** Nodes 0, 1 and 2 with 4 bytes each. */
function nodes(): NodeMap {
  const table = () => new Map([[TYPE, { total: 4, systemReserved: 0, allocatable: 4, reserved: 0, free: 4 }]]);
  return new Map([0, 1, 2].map((id) => [id, { assignments: 0, cells: [id], tables: table() }]));
}

/** Of each node its reserved and free bytes, the number of its allocations and its group. */
function shown(of: NodeMap): string[] {
  return [...of.values()].map(({ assignments, cells, tables }) => {
    const { reserved = 0, free = 0 } = tables.get(TYPE) ?? {};
    return `${reserved}+${free} x${assignments} of ${cells.join("")}`;
  });
}

const block = (on: readonly number[], bytes: number, type = TYPE) => ({ nodes: on, type, bytes });

test("memory is taken of the nodes in their order, and given back in it", () => {
  const of = nodes();
  assert.equal(takeMemory(of, block([0, 1], 6)), 0);
  assert.deepEqual(shown(of), ["4+0 x1 of 01", "2+2 x1 of 01", "0+4 x0 of 2"]);
  assert.equal(takeMemory(of, block([0, 1], 1)), 0);
  assert.deepEqual(shown(of), ["4+0 x2 of 01", "3+1 x2 of 01", "0+4 x0 of 2"]);
  giveMemory(of, block([0, 1], 6));
  assert.deepEqual(shown(of), ["0+4 x1 of 01", "1+3 x1 of 01", "0+4 x0 of 2"]);
  giveMemory(of, block([0, 1], 1));
  assert.deepEqual(shown(of), shown(nodes()));
});

test("memory that is little enough for one node of a group leaves the others, which are of the group all the same", () => {
  const of = nodes();
  takeMemory(of, block([1, 2], 3));
  assert.deepEqual(shown(of), ["0+4 x0 of 0", "3+1 x1 of 12", "0+4 x1 of 12"]);
  giveMemory(of, block([1, 2], 3));
  assert.deepEqual(shown(of), shown(nodes()));
});

test("memory that the nodes do not have is what is left to take, also of nodes and kinds that the machine does not have", () => {
  const of = nodes();
  assert.equal(takeMemory(of, block([0, 1], 11)), 3);
  assert.equal(takeMemory(of, block([7, 2], 5)), 1);
  assert.equal(takeMemory(of, block([2], 1, "hugepages-2Mi")), 1);
  assert.deepEqual(shown(of), ["4+0 x1 of 01", "4+0 x1 of 01", "4+0 x2 of 2"]);
  giveMemory(of, block([2], 1, "hugepages-2Mi"));
  giveMemory(of, block([7, 2], 4));
  assert.deepEqual(shown(of)[2], "0+4 x0 of 2");
});

test("a pod has memory as long as one of its containers or the pod as a whole has", () => {
  const state = new MemoryState();
  for (const name of ["setup", "app"]) state.setBlocks("u", name, [block([0], 1)]);
  state.delete("u", "setup");
  assert.deepEqual([...state.holders()], ["u"]);
  state.delete("u", "app");
  state.delete("u", "app");
  assert.deepEqual([[...state.holders()], [...state.entries]], [[], []]);
  state.setPodBlocks("v", [block([0], 1)]);
  assert.deepEqual([...state.holders()], ["v"]);
  state.deletePod("v");
  assert.deepEqual([...state.holders()], []);
});
