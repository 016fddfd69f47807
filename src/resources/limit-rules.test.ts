import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KernelLimits } from "../adapters/cgroup/facts.ts";
import { type AgentOptions, parseAgentOptions } from "../config/index.ts";
import { nodeCgroupValues } from "../model/pod-cgroup-values.ts";
import { nodeValues } from "./class-values.ts";
import { type LimitOptions, limitFacts, limitRules, reservedRules } from "./limit-rules.ts";

const MIB = 2 ** 20;
const OPTIONS: LimitOptions = {
  enforceNodeAllocatable: ["pods"],
  systemReserved: {},
  kubeReserved: {},
  cpuCFSQuota: true,
  cpuCFSQuotaPeriod: 100,
  podPidsLimit: -1,
  reservedSystemCPUs: "",
  cpuManagerPolicy: "none",
  qosReserved: {},
  memoryReservationPolicy: "None",
  featureGates: {},
};
const MACHINE = { cores: 2, memoryBytes: 1024 * MIB, hugePages: { "2Mi": 32 * MIB, "1Gi": 0 } };
const KERNEL = { hugepageKib: [2048, 1024 ** 2], pidMax: 1000, cgroupVersion: 2 } as const;

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
      "is less by the number of reserved CPUs in place of cpu amounts",
      { systemReserved: { cpu: "100m" }, kubeReserved: { cpu: "500m" }, reservedSystemCPUs: "1" },
      { cpuShares: 1024, memoryLimit: 1024 * MIB, pids: 1000, hugepages: { "2MB": 32 * MIB, "1GB": 0 } },
    ],
    [
      "is everything where reservations are not enforced",
      { enforceNodeAllocatable: [], systemReserved: { memory: "24Mi", pid: "100" } },
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

test("all pods may use all CPUs, in words that systemd keeps, unless a CPU policy hands them out", () => {
  const machine = { ...MACHINE, onlineCpus: "0-1" };
  const cpus = (options: Partial<LimitOptions>, cgroupVersion: 1 | 2): string | undefined =>
    nodeValues(limitRules({ ...OPTIONS, ...options }, machine, { ...KERNEL, cgroupVersion })).cpus;
  assert.equal(cpus({}, 2), "0-1");
  assert.equal(cpus({}, 1), undefined, "version 1 has copied them from above");
  assert.equal(cpus({ cpuManagerPolicy: "static" }, 2), undefined);
});

describe("what the gates add", () => {
  const rules = (options: Partial<LimitOptions>, kernel: { cgroupVersion: 1 | 2 } = { cgroupVersion: 2 }) =>
    limitRules({ ...OPTIONS, ...options }, MACHINE, { ...KERNEL, ...kernel });

  test("QOSReserved: the share, of the memory without reservations even where they are not enforced", () => {
    const given = { qosReserved: { memory: "30%" }, enforceNodeAllocatable: [], systemReserved: { memory: "24Mi" } };
    assert.equal(rules(given).qosReserved, undefined);
    const { qosReserved } = rules({ ...given, featureGates: { QOSReserved: true } });
    assert.deepEqual(qosReserved, { percent: 30, memory: 1000 * MIB });
  });

  test("MemoryQoS: protection by its policy, only on cgroup v2", () => {
    const gate = { featureGates: { MemoryQoS: true } };
    assert.equal(rules({}).protectsMemory, undefined);
    assert.equal(rules(gate).protectsMemory, false);
    assert.equal(rules({ ...gate, memoryReservationPolicy: "TieredReservation" }).protectsMemory, true);
    assert.equal(rules(gate, { cgroupVersion: 1 }).protectsMemory, undefined);
  });
});

describe("what the limits of containers follow from", () => {
  const ALL = parseAgentOptions([]).values;
  const machine = { memoryBytes: 1000, swapBytes: () => 500 };
  const kernel = { ...KERNEL, controllers: [], pageSize: 4096, canLimitSwap: true };
  const facts = (options: Partial<AgentOptions>, more: Partial<KernelLimits> = {}) =>
    limitFacts({ ...ALL, ...options }, machine, { ...kernel, ...more });

  test("all processes of a container are killed together on cgroup v2, unless it is set otherwise", () => {
    assert.equal(facts({}).singleProcessOomKill, false);
    assert.equal(facts({ singleProcessOOMKill: true }).singleProcessOomKill, true);
    assert.equal(facts({}, { cgroupVersion: 1 }).singleProcessOomKill, true, "version 1 cannot");
  });

  test("containers have swap only with LimitedSwap, on cgroup v2, where the kernel counts it", () => {
    assert.equal(facts({ swapBehavior: "LimitedSwap" }).swapBytes, 500);
    assert.equal(facts({ swapBehavior: "NoSwap" }).swapBytes, undefined);
    assert.equal(facts({ swapBehavior: "LimitedSwap" }, { cgroupVersion: 1 }).swapBytes, undefined);
    assert.equal(facts({ swapBehavior: "LimitedSwap" }, { canLimitSwap: false }).swapBytes, undefined);
  });

  test("memory is throttled with MemoryQoS, below the node's memory without reservations", () => {
    assert.equal(facts({}).memoryQos, undefined);
    const { memoryQos } = facts({ featureGates: { MemoryQoS: true }, systemReserved: { memory: "100" } });
    assert.deepEqual([memoryQos?.nodeBytes, memoryQos?.isProtected, memoryQos?.pageSize], [900, false, 4096]);
  });
});

describe("reservations on cgroups of the host", () => {
  const given = {
    ...OPTIONS,
    systemReservedCgroup: "/system",
    kubeReservedCgroup: "/kube-daemons.slice",
    systemReserved: { cpu: "500m", memory: "64Mi", pid: "100" },
    kubeReserved: { cpu: "250m", memory: "32Mi" },
  };
  const of = (enforceNodeAllocatable: string[], driver: "cgroupfs" | "systemd" = "cgroupfs") =>
    reservedRules({ ...given, enforceNodeAllocatable }, KERNEL, driver);

  test("are none unless they are enforced", () => assert.deepEqual(of(["pods"]), []));

  test("are cpu, memory, processes and huge pages", () => {
    const values = { cpuShares: 512, memoryLimit: 64 * MIB, pids: 100, hugepages: { "2MB": 0, "1GB": 0 } };
    const rule = { of: "system", name: "/system", path: "/system", isCompressible: false };
    assert.deepEqual(of(["pods", "system-reserved"]), [{ ...rule, values }]);
  });

  test("are only cpu if compressible, at the path of the slice", () => {
    const rule = { of: "kube", name: "/kube-daemons.slice", isCompressible: true, values: { cpuShares: 256 } };
    assert.deepEqual(of(["kube-reserved-compressible"], "systemd"), [
      { ...rule, path: "/kube.slice/kube-daemons.slice" },
    ]);
  });

  test("are protected with MemoryQoS", () => {
    const options = { ...given, enforceNodeAllocatable: ["kube-reserved"], featureGates: { MemoryQoS: true } };
    assert.equal(reservedRules(options, KERNEL, "cgroupfs")[0]?.values.memoryMin, 32 * MIB);
  });
});
