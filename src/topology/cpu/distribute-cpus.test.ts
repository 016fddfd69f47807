import assert from "node:assert/strict";
import { test } from "node:test";
import { CpuLayout } from "./cpu-layout.ts";
import { distributeCpus } from "./distribute-cpus.ts";

/** NUMA nodes of so many CPUs, of which none, one and two are not free. */
function unequalNodes(nodes: number, size: number) {
  const cpus = Array.from({ length: nodes * size }, (_, cpu) => {
    const numa = Math.floor(cpu / size);
    return { cpu, core: cpu, socket: numa, numa, uncore: numa };
  });
  const layout = new CpuLayout({ cpus });
  const available = new Set(cpus.filter(({ cpu, numa }) => cpu % size >= numa % 3).map(({ cpu }) => cpu));
  return { layout, available };
}

test("CPUs are spread evenly over nodes so that all are left with as many", () => {
  const { layout, available } = unequalNodes(4, 8);
  const taken = layout.count(distributeCpus({ layout, available }, 13, { groupSize: 1 }), "numa");
  assert.deepEqual([...taken].sort(), [
    [0, 7],
    [3, 6],
  ]);
});

test("on machines with many NUMA nodes not every way to spread CPUs is compared", () => {
  const { layout, available } = unequalNodes(16, 64);
  const began = performance.now();
  const cpus = distributeCpus({ layout, available }, 601, { groupSize: 1 });
  // 0.05 s; it was 25 s.
  assert.ok(performance.now() - began < 3000);
  const taken = [...layout.count(cpus, "numa").values()];
  assert.deepEqual([cpus.size, taken.length, Math.min(...taken)], [601, 10, 60]);
});
