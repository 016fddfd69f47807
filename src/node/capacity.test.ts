import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeResources, type Reservations, withDevices, withPatchedResources } from "./capacity.ts";

const machine = { cores: 4, memoryBytes: 8 * 2 ** 30, storageBytes: 100 * 2 ** 30, hugePages: {} };
const nothing = { maxPods: 110, podsPerCore: 0, systemReserved: {}, kubeReserved: {}, evictionHard: {} };

test("a machine without reservations gives all it has", () => {
  const { capacity, allocatable } = nodeResources(machine, nothing);
  assert.deepEqual(capacity, { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" });
  assert.deepEqual(allocatable, capacity);
});

const cases: { name: string; given: Partial<Reservations>; want: object }[] = [
  {
    name: "reservations and hard thresholds are taken off",
    given: {
      systemReserved: { cpu: "200m", memory: "1Gi" },
      kubeReserved: { cpu: "300m", "ephemeral-storage": "5Gi" },
      evictionHard: { "memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "15%" },
    },
    // 10 % in the precision of Kubernetes are 10737418400 bytes.
    want: { cpu: "3500m", memory: "7068Mi", pods: "110", "ephemeral-storage": "91268054880" },
  },
  {
    name: "thresholds that are disabled are not taken off",
    given: { evictionHard: { "memory.available": "100%", "nodefs.available": "0%" } },
    want: { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" },
  },
  {
    name: "the number of reserved CPUs takes the place of the reserved cpu amounts",
    given: {
      reservedSystemCPUs: "0-1,3",
      systemReserved: { cpu: "200m", memory: "1Gi" },
      kubeReserved: { cpu: "300m" },
    },
    want: { cpu: "1", memory: "7Gi", pods: "110", "ephemeral-storage": "100Gi" },
  },
  {
    name: "hard thresholds may be left out",
    given: { evictionHard: { "memory.available": "1Gi" }, experimentalAllocatableIgnoreEviction: true },
    want: { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" },
  },
  {
    name: "local storage that is not isolated is no resource",
    given: { localStorageCapacityIsolation: false, evictionHard: { "nodefs.available": "10%" } },
    want: { cpu: "4", memory: "8Gi", pods: "110" },
  },
  {
    name: "never below nothing",
    given: { systemReserved: { cpu: "9", memory: "9Gi" } },
    want: { cpu: "0", memory: "0", pods: "110", "ephemeral-storage": "100Gi" },
  },
  {
    name: "pods by core count, at most the fixed number",
    given: { podsPerCore: 5 },
    want: { cpu: "4", memory: "8Gi", pods: "20", "ephemeral-storage": "100Gi" },
  },
  {
    name: "a large number of pods by core is cut",
    given: { podsPerCore: 500 },
    want: { cpu: "4", memory: "8Gi", pods: "110", "ephemeral-storage": "100Gi" },
  },
];
for (const { name, given, want } of cases) {
  test(name, () => assert.deepEqual(nodeResources(machine, { ...nothing, ...given }).allocatable, want));
}

test("huge pages are taken off the memory", () => {
  const { capacity, allocatable } = nodeResources({ ...machine, hugePages: { "2Mi": 2 ** 30 } }, nothing);
  assert.equal(capacity["hugepages-2Mi"], "1Gi");
  assert.equal(capacity["memory"], "8Gi");
  assert.equal(allocatable["memory"], "7Gi");
});

test("a filesystem that cannot be looked at is not told of", () => {
  assert.equal(nodeResources({ ...machine, storageBytes: 0 }, nothing).capacity["ephemeral-storage"], undefined);
});

test("a resource that somebody patched into the capacity is allocatable", () => {
  const own = { capacity: { cpu: "4" }, allocatable: { cpu: "3" } };
  const known = { capacity: { cpu: "2", "example.com/dongle": "4" }, allocatable: { cpu: "1" } };
  assert.deepEqual(withPatchedResources(own, known), {
    capacity: { cpu: "4", "example.com/dongle": "4" },
    allocatable: { cpu: "3", "example.com/dongle": "4" },
  });
});

test("a resource that is no longer in the capacity is not allocatable", () => {
  const own = { capacity: { cpu: "4" }, allocatable: { cpu: "3" } };
  assert.deepEqual(withPatchedResources(own, { capacity: {}, allocatable: { "example.com/dongle": "4" } }), own);
});

test("huge page sizes that the kernel lost are dropped", () => {
  const own = { capacity: { cpu: "4" }, allocatable: { cpu: "3" } };
  const known = { capacity: { "hugepages-1Gi": "1Gi" }, allocatable: { "hugepages-1Gi": "1Gi" } };
  assert.deepEqual(withPatchedResources(own, known), own);
});

test("devices of plugins count as their plugins report them, whatever the Node object has", () => {
  const own = { capacity: { cpu: "4" }, allocatable: { cpu: "3" } };
  const counts = new Map([["example.com/gpu", { capacity: 2, allocatable: 1 }]]);
  const resources = withDevices(own, counts);
  assert.deepEqual(resources, {
    capacity: { cpu: "4", "example.com/gpu": "2" },
    allocatable: { cpu: "3", "example.com/gpu": "1" },
  });
  const known = { capacity: { "example.com/gpu": "8" }, allocatable: { "example.com/gpu": "8" } };
  assert.deepEqual(withPatchedResources(resources, known), resources);
});
