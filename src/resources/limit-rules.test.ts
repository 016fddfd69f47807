import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nodeCgroupValues } from "../model/pod-cgroup-values.ts";
import { type LimitOptions, limitRules } from "./limit-rules.ts";

const MIB = 2 ** 20;
const OPTIONS: LimitOptions = {
  enforceNodeAllocatable: ["pods"],
  systemReserved: {},
  kubeReserved: {},
  cpuCFSQuota: true,
  cpuCFSQuotaPeriod: 100,
  podPidsLimit: -1,
};
const MACHINE = { cores: 2, memoryBytes: 1024 * MIB, hugePages: { "2Mi": 32 * MIB, "1Gi": 0 } };
const KERNEL = { hugepageKib: [2048, 1024 ** 2], pidMax: 1000 };

describe("what all pods together may use", () => {
  const table: [string, Partial<LimitOptions>, object][] = [
    [
      "is what the machine has, its huge pages too",
      {},
      { cpuShares: 2048, memoryLimit: 1024 * MIB, pids: 1000, hugepages: { "2MB": 32 * MIB, "1GB": 0 } },
    ],
    [
      "is less by what is reserved, of every kind",
      { systemReserved: { memory: "24Mi", pid: "100" }, kubeReserved: { cpu: "500m", "hugepages-2Mi": "4Mi" } },
      { cpuShares: 1536, memoryLimit: 1000 * MIB, pids: 900, hugepages: { "2MB": 28 * MIB, "1GB": 0 } },
    ],
    [
      "is everything where reservations are not enforced",
      { enforceNodeAllocatable: [], systemReserved: { memory: "24Mi" } },
      { cpuShares: 2048, memoryLimit: 1024 * MIB, pids: 1000, hugepages: { "2MB": 32 * MIB, "1GB": 0 } },
    ],
  ];
  for (const [title, options, wanted] of table) {
    test(title, () => {
      const { node, hugepageSizes } = limitRules({ ...OPTIONS, ...options }, MACHINE, KERNEL);
      assert.deepEqual(nodeCgroupValues(node.allocatable, { pids: node.pids, hugepageSizes }), wanted);
    });
  }
});
