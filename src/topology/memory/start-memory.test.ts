import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type MemoryBlock, MemoryState, type MemoryTable, type NodeMap, takeMemory } from "./memory-state.ts";
import { validMemoryState } from "./start-memory.ts";

const SIZE = 100;
const HUGE = "hugepages-2Mi";
const idleTable = (total = SIZE, systemReserved = 10): MemoryTable => {
  const allocatable = total - systemReserved;
  return { total, systemReserved, allocatable, reserved: 0, free: allocatable };
};

/** Two nodes with memory and huge pages of which nobody has anything; `more` replaces tables of node 1. */
function idle(more: Readonly<Record<string, MemoryTable>> = {}, ids: readonly number[] = [0, 1]): NodeMap {
  return new Map(
    ids.map((id) => {
      const tables = { memory: idleTable(), [HUGE]: idleTable(SIZE, 0), ...(id === 1 && more) };
      return [id, { assignments: 0, cells: [id], tables: new Map(Object.entries(tables)) }];
    }),
  );
}

const block = (nodes: readonly number[], bytes: number, type = "memory"): MemoryBlock => ({ nodes, type, bytes });

/** What an agent persisted that gave these blocks to a container. */
function persisted(blocks: readonly MemoryBlock[], nodes = idle()): MemoryState {
  for (const each of blocks) takeMemory(nodes, each);
  return new MemoryState(nodes, { entries: [["u", new Map([["app", blocks]])]] });
}

const GROUP = [block([0, 1], 120)];

test("without a state all memory is nobody's", () => {
  const { state, isRecounted } = validMemoryState(idle(), new MemoryState());
  assert.deepEqual([state.nodes, isRecounted], [idle(), false]);
});

test("a state that fits is continued as it is", () => {
  for (const blocks of [GROUP, [block([1], 90), block([1], 100, HUGE)], []]) {
    const state = persisted(blocks);
    assert.deepEqual(validMemoryState(idle(), state), { state, isRecounted: false });
  }
});

describe("a state does not fit", () => {
  const other = /\[memorymanager\] the expected machine state is different from the real one/;
  const assigned = new MemoryState(new Map(), { entries: [["u", new Map([["app", GROUP]])]] });
  const whole = new MemoryState(new Map(), { pods: [["u", GROUP]] });
  const cases: readonly { name: string; state: MemoryState; machine?: NodeMap; why: RegExp }[] = [
    { name: "without nodes, but with memory of containers", state: assigned, why: /machine state can not be empty/ },
    { name: "without nodes, but with memory of pods", state: whole, why: /machine state can not be empty/ },
    { name: "to fewer nodes", state: persisted([]), machine: idle({}, [0]), why: other },
    { name: "to more nodes", state: persisted([]), machine: idle({}, [0, 1, 2]), why: other },
    { name: "to other nodes", state: persisted([]), machine: idle({}, [0, 2]), why: other },
    {
      name: "to one node of which more is reserved",
      state: persisted([]),
      machine: idle({ memory: idleTable(SIZE, 20) }),
      why: other,
    },
    {
      name: "to one node of another size",
      state: persisted([]),
      machine: idle({ memory: idleTable(SIZE + 10, 20) }),
      why: other,
    },
    {
      name: "to one node with other huge pages",
      state: persisted([]),
      machine: idle({ [HUGE]: idleTable(SIZE * 2, SIZE) }),
      why: other,
    },
    {
      name: "to one node with huge pages of another size, too",
      state: persisted([]),
      machine: idle({ "hugepages-1Gi": idleTable() }),
      why: other,
    },
    {
      name: "with memory of a node that is not there",
      state: persisted([block([1, 7], 5)]),
      why: /\(pod: u, container: app\) the memory assignment uses the NUMA that does not exist/,
    },
    {
      name: "with a kind of memory that a node does not have",
      state: persisted([block([1], 5, "hugepages-1Gi")]),
      why: /\(pod: u, container: app\) the memory assignment uses memory resource that does not exist/,
    },
    { name: "with one byte more than there is", state: persisted([block([1], 91)]), why: other },
  ];
  for (const { name, state, machine = idle(), why } of cases) {
    test(name, () => assert.throws(() => validMemoryState(machine, state), why));
  }
});

describe("a state that lost count is counted anew:", () => {
  const lost: Readonly<Record<string, (nodes: NodeMap) => void>> = {
    "of allocations": (nodes) => {
      for (const node of nodes.values()) node.assignments++;
    },
    "of the allocations of one node": (nodes) => {
      const node = nodes.get(1);
      if (node !== undefined) node.assignments--;
    },
    "of the members of a group": (nodes) => {
      const node = nodes.get(1);
      if (node !== undefined) node.cells = [1];
    },
    "of who is in a group": (nodes) => {
      const node = nodes.get(0);
      if (node !== undefined) node.cells = [0, 2];
    },
    "of free memory": (nodes) => {
      const table = nodes.get(1)?.tables.get("memory");
      if (table !== undefined) table.free -= 5;
    },
    "of reserved memory": (nodes) => {
      const table = nodes.get(0)?.tables.get("memory");
      if (table !== undefined) table.reserved -= 5;
    },
    "of free huge pages": (nodes) => {
      const table = nodes.get(0)?.tables.get(HUGE);
      if (table !== undefined) table.free -= 2;
    },
  };
  for (const [name, spoil] of Object.entries(lost)) {
    test(name, () => {
      const state = persisted(GROUP);
      spoil(state.nodes);
      const found = validMemoryState(idle(), state);
      assert.equal(found.isRecounted, true);
      assert.deepEqual(found.state.nodes, persisted(GROUP).nodes);
      assert.deepEqual([...found.state.entries], [...state.entries]);
    });
  }

  test("not if only the nodes of a group have it divided otherwise", () => {
    const state = persisted(GROUP);
    for (const [id, by] of [
      [0, -5],
      [1, 5],
    ] as const) {
      const table = state.nodes.get(id)?.tables.get("memory");
      if (table !== undefined) Object.assign(table, { reserved: table.reserved + by, free: table.free - by });
    }
    assert.equal(validMemoryState(idle(), state).isRecounted, false);
  });

  test("what containers have of their pod's memory is not counted twice", () => {
    const nodes = idle();
    takeMemory(nodes, block([0], 80));
    const entries = [["u", new Map([["app", [block([0], 60)]]])]] as const;
    const state = new MemoryState(nodes, { entries, pods: [["u", [block([0], 80)]]] });
    assert.deepEqual(validMemoryState(idle(), state), { state, isRecounted: false });
  });
});
