import assert from "node:assert/strict";
import { test } from "node:test";
import { checkHost, type HostFacts, swapsIn } from "./host-checks.ts";

type Options = Parameters<typeof checkHost>[0];
const FINE: Options = {
  failCgroupV1: false,
  swapBehavior: "",
  singleProcessOOMKill: undefined,
  failSwapOn: true,
  systemReserved: {},
  kubeReserved: {},
  reservedSystemCPUs: "",
  evictionHard: {},
  experimentalAllocatableIgnoreEviction: false,
};
const CONTROLLERS = ["cpuset", "cpu", "cpuacct", "memory", "pids"];
const MACHINE: HostFacts = {
  cgroupVersion: 2,
  controllers: CONTROLLERS,
  swaps: [],
  cores: 4,
  onlineCpus: "0-3",
  memoryBytes: 2 ** 30,
};

const rows: { name: string; options: Partial<Options>; facts: Partial<HostFacts>; given?: boolean; says?: RegExp }[] = [
  { name: "cgroup v1 that is allowed", options: {}, facts: { cgroupVersion: 1 } },
  {
    name: "cgroup v1 that somebody refused",
    options: { failCgroupV1: true },
    facts: { cgroupVersion: 1 },
    given: true,
    says: /failCgroupV1: true, but/,
  },
  { name: "cgroup v2", options: { failCgroupV1: true }, facts: { cgroupVersion: 2 }, given: true },
  { name: "no cgroups at all", options: { failCgroupV1: true }, facts: { cgroupVersion: undefined }, given: true },
  {
    name: "swap for pods on v1",
    options: { swapBehavior: "LimitedSwap" },
    facts: { cgroupVersion: 1 },
    says: /LimitedSwap needs cgroup v2/,
  },
  { name: "swap for pods on v2", options: { swapBehavior: "LimitedSwap" }, facts: { cgroupVersion: 2 } },
  {
    name: "ending whole containers on v1",
    options: { singleProcessOOMKill: false },
    facts: { cgroupVersion: 1 },
    says: /singleProcessOOMKill: false needs cgroup v2/,
  },
  { name: "ending one process on v1", options: { singleProcessOOMKill: true }, facts: { cgroupVersion: 1 } },
  { name: "swap", options: {}, facts: { swaps: ["/swapfile"] }, says: /swap is on: \/swapfile; turn it off/ },
  { name: "swap that is allowed", options: { failSwapOn: false }, facts: { swaps: ["/swapfile"] } },
  {
    name: "more memory reserved than there is",
    options: { systemReserved: { memory: "600Mi" }, kubeReserved: { memory: "600Mi" } },
    facts: {},
    says: /reserve 1200Mi of memory, but this machine has 1Gi/,
  },
  {
    name: "a threshold above the memory that is left",
    options: { systemReserved: { memory: "600Mi" }, evictionHard: { "memory.available": "50%" } },
    facts: {},
    says: /^evictionHard\[memory\.available\]: 50% with systemReserved and kubeReserved is 1112Mi of memory, but this machine has 1Gi; lower/,
  },
  {
    name: "a threshold above the memory that counts for nothing",
    options: { evictionHard: { "memory.available": "2Gi" }, experimentalAllocatableIgnoreEviction: true },
    facts: {},
  },
  { name: "a disabled threshold", options: { evictionHard: { "memory.available": "100%" } }, facts: {} },
  {
    name: "cgroup v1 without controllers",
    options: {},
    facts: { cgroupVersion: 1, controllers: ["cpu", "cpuacct"] },
    says: /^cgroup v1 without the controllers cpuset, memory; mount them/,
  },
  { name: "cgroup v2 without controllers", options: {}, facts: { controllers: [] } },
  { name: "all memory reserved", options: { systemReserved: { memory: "1Gi", cpu: "4" } }, facts: {} },
  {
    name: "a reserved CPU that is not there",
    options: { reservedSystemCPUs: "0,3-4" },
    facts: {},
    says: /reservedSystemCPUs: 0,3-4, but the online CPUs of this machine are 0-3/,
  },
  {
    name: "a reserved CPU above one that is offline",
    options: { reservedSystemCPUs: "4" },
    facts: { onlineCpus: "0,2-4" },
  },
  {
    name: "a reserved CPU that is offline",
    options: { reservedSystemCPUs: "0-1" },
    facts: { onlineCpus: "0,2-4" },
    says: /reservedSystemCPUs: 0-1, but the online CPUs of this machine are 0,2-4/,
  },
  {
    name: "reserved CPUs in place of an amount",
    options: { reservedSystemCPUs: "3", kubeReserved: { cpu: "9" } },
    facts: {},
  },
];
for (const { name, options, facts, given = false, says } of rows) {
  test(`${name} ${says === undefined ? "is fine" : "is refused"}`, () => {
    const verdict = checkHost({ ...FINE, ...options }, { ...MACHINE, ...facts }, () => given);
    assert.equal(verdict.refusals.length, says === undefined ? 0 : 1, verdict.refusals.join("\n"));
    if (says !== undefined) assert.match(verdict.refusals.join("\n"), says);
  });
}

test("cgroup v1 that the default refuses is served, with a word", () => {
  const verdict = checkHost({ ...FINE, failCgroupV1: true }, { ...MACHINE, cgroupVersion: 1 }, () => false);
  assert.deepEqual(verdict.refusals, []);
  assert.match(verdict.warnings.join(), /cgroup v1/);
});

test("the names of swaps", () => {
  const head = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
  assert.deepEqual(swapsIn(head), []);
  assert.deepEqual(swapsIn(`${head}/swapfile   file\t\t8\t0\t-2\n/dev/sda2 partition 9 0 -3\n`), [
    "/swapfile",
    "/dev/sda2",
  ]);
});

test("a controller that is missing is warned of with what does not work, and its absence is no surprise without cgroups", () => {
  const lacking = { ...MACHINE, controllers: ["cpuset", "cpu"] };
  assert.deepEqual(checkHost(FINE, lacking, () => false).warnings, [
    "this kernel has no cgroup controller memory: memory limits of pods have no effect, and no pod is evicted for lack of memory",
    "this kernel has no cgroup controller pids: podPidsLimit and reserved process ids have no effect",
  ]);
  assert.deepEqual(checkHost(FINE, { ...lacking, cgroupVersion: undefined }, () => false).warnings, []);
  assert.deepEqual(checkHost(FINE, MACHINE, () => false).warnings, []);
});
