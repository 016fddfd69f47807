import assert from "node:assert/strict";
import { test } from "node:test";
import type { CgroupValues } from "../model/pod-cgroup-values.ts";
import { LimitWriter } from "./limit-writer.ts";

/** A cgroup in which 100 bytes cannot be reclaimed. */
function writer() {
  const sets: CgroupValues[] = [];
  const warnings: unknown[] = [];
  const tree = {
    set: async (_path: string, values: CgroupValues): Promise<readonly string[]> => {
      sets.push(values);
      return [];
    },
    unreclaimable: () => 100,
  };
  const limits = new LimitWriter(tree, { warn: (_message, fields) => void warnings.push(fields) });
  return { limits, sets, warnings };
}

const fitting = [
  { name: "none at all", values: { cpuShares: 5 } },
  { name: "an unlimited one", values: { memoryLimit: -1 } },
  { name: "as much as is in use", values: { memoryLimit: 100 } },
];
for (const { name, values } of fitting) {
  test(`a memory limit of a shared cgroup: ${name} is set`, async () => {
    const { limits, sets, warnings } = writer();
    assert.deepEqual(await limits.setShared("/kubepods", values), []);
    assert.deepEqual([sets, warnings], [[values], []]);
    assert.equal(await limits.setShared("/kubepods", values), undefined, "once");
  });
}

test("a memory limit of a shared cgroup below what is in use is left out, and warned of", async () => {
  const { limits, sets, warnings } = writer();
  const problem = "memory limit 99: 100 bytes are in use and cannot be reclaimed";
  assert.deepEqual(await limits.setShared("/kubepods", { memoryLimit: 99, cpuShares: 5 }), [problem]);
  assert.deepEqual([sets, warnings], [[{ cpuShares: 5 }], [{ cgroup: "/kubepods", problem }]]);
});
