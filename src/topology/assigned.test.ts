import assert from "node:assert/strict";
import { test } from "node:test";
import { assignedCompute } from "./assigned.ts";
import { CpuState } from "./cpu/cpu-state.ts";
import { MemoryState } from "./memory/memory-state.ts";

test("the pod resources API has exclusive CPUs and blocks of memory, and what may be given out", () => {
  const cpus = new CpuState(new Set([0, 1]), { entries: [["uid", new Map([["app", new Set([2, 3])]])]] });
  const block = { nodes: [0, 1], type: "memory", bytes: 4096 };
  const table = (allocatable: number) => ({ total: 9, systemReserved: 1, allocatable, reserved: 0, free: 0 });
  const tables = new Map([
    ["memory", table(8)],
    ["hugepages-2Mi", table(0)],
  ]);
  const memory = new MemoryState(new Map([[1, { assignments: 0, cells: [], tables }]]), {
    entries: [["uid", new Map([["app", [block]]])]],
  });
  const assigned = assignedCompute({ state: cpus, allocatable: new Set([1, 2, 3]) }, { state: memory });
  assert.deepEqual(assigned.cpus("uid", "app"), [2, 3]);
  assert.deepEqual(assigned.cpus("uid", "other"), []);
  assert.deepEqual(assigned.memory("uid", "app"), [block]);
  assert.deepEqual(assigned.memory("other", "app"), []);
  assert.deepEqual(assigned.allocatableCpus(), [1, 2, 3]);
  assert.deepEqual(assigned.allocatableMemory(), [{ type: "memory", bytes: 8, nodes: [1] }]);
});
