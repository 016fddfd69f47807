import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nodeCgroupValues } from "../model/pod-cgroup-values.ts";
import { type LimitOptions, limitRules, reservedRules } from "./limit-rules.ts";

const MIB = 2 ** 20;
const OPTIONS: LimitOptions = {
  enforceNodeAllocatable: ["pods"],
  systemReserved: {},
  kubeReserved: {},
  cpuCFSQuota: true,
  cpuCFSQuotaPeriod: 100,
  podPidsLimit: -1,
  reservedSystemCPUs: "",
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
