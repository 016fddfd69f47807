import type { ImageReport } from "../../src/model/image-report.ts";
import type { NodeExplanation } from "../../src/model/node-pressure.ts";
import type { CpuReport, TopologyReport } from "../../src/model/topology-report.ts";

const MEBI = 2 ** 20;
const GIBI = 2 ** 30;

/** A machine of two sockets with a NUMA node, two L3 groups, eight cores and sixteen threads each, partly handed out. */
export function fakeTopology(): TopologyReport {
  const cpus = Array.from({ length: 32 }, (_, cpu): CpuReport => {
    const core = cpu % 16;
    const socket = core < 8 ? 0 : 1;
    const use = cpu % 16 === 0 ? "reserved" : core === 2 || core === 3 || core === 9 ? "exclusive" : "shared";
    return { cpu, core, socket, numa: socket, uncore: Math.floor(core / 4), use };
  });
  const memory = (free: number) => [
    { type: "memory", total: 32 * GIBI, allocatable: 31 * GIBI, free },
    { type: "hugepages-2Mi", total: 2 * GIBI, allocatable: 2 * GIBI, free: GIBI },
    { type: "hugepages-1Gi", total: 4 * GIBI, allocatable: 4 * GIBI, free: 4 * GIBI },
  ];
  const [db, cache] = [
    { uid: "uid-2", namespace: "shop", pod: "worker-2", container: "main" },
    { uid: "uid-3", namespace: "default", pod: "cache-with-a-name-that-is-rather-long-for-a-pod-3", container: "main" },
  ];
  const nic = (id: string, node: number) => ({ resource: "example.com/nic", id, nodes: [node], isHealthy: true });
  return {
    policies: { cpu: "static", memory: "Static", topology: "restricted", scope: "container" },
    cpus,
    offline: [],
    nodes: [
      { id: 0, distances: [10, 21], memory: memory(12 * GIBI) },
      { id: 1, distances: [21, 10], memory: memory(31 * GIBI) },
    ],
    holdings: [
      { ...db, cpus: [2, 3, 18, 19], memory: [{ type: "memory", bytes: 16 * GIBI, nodes: [0] }] },
      { ...cache, cpus: [9, 25], memory: [{ type: "hugepages-2Mi", bytes: GIBI, nodes: [1] }] },
    ],
    devices: [
      { ...nic("eth-0000:3b:00.0", 0), holder: db },
      { ...nic("eth-0000:3b:00.1", 0), isHealthy: false },
      { ...nic("eth-0000:af:00.0", 1), holder: cache },
      { resource: "example.com/gpu", id: "GPU-6a1f3c1e", nodes: [], isHealthy: true },
    ],
  };
}

/** Images in use, unused, with long names and without any. */
export function fakeImages(): ImageReport {
  const digest = `sha256:${"5f".repeat(32)}`;
  const image = (name: string, sizeMebi: number) => ({
    id: `sha256:${name}`,
    names: [name],
    sizeBytes: sizeMebi * MEBI,
  });
  return {
    images: [
      { ...image("registry.example/shop/app:1.2", 240), remove: "age", unusedMs: 21 * 86_400_000 },
      { ...image("registry.example/shop/app:1.3", 241), keep: "spare", unusedMs: 3 * 86_400_000 },
      { ...image("registry.example/shop/app:1.4", 243), keep: "inUse", by: "shop/api-1" },
      {
        ...image(`registry.example/a-team/with-a-long-name/of-a-service@${digest}`, 1890),
        keep: "inUse",
        by: "cache-3",
      },
      { ...image("registry.k8s.io/pause:3.10.1", 0.3), keep: "sandbox" },
      { id: digest, names: [], sizeBytes: 77 * MEBI, keep: "young", unusedMs: 31_000 },
    ],
    imageFilesystem: { mountpoint: "/var/lib/containerd", capacityBytes: 250 * GIBI, availableBytes: 61 * GIBI },
    usagePercent: 75,
    highThresholdPercent: 85,
    lowThresholdPercent: 80,
    minimumAgeMs: 120_000,
    maximumAgeMs: 14 * 86_400_000,
    bytesToFree: 0,
    collected: { images: 4, bytes: 900 * MEBI },
  };
}

/** A node with its signals, the order of eviction, and an eviction. */
export function fakePressure(): NodeExplanation {
  const pod = { uid: "uid-2", namespace: "shop", name: "worker-2" };
  const hard = (value: number) => ({ kind: "hard", value, graceMs: 0 }) as const;
  return {
    node: "n1",
    conditions: [],
    signals: [
      {
        signal: "memory.available",
        unit: "bytes",
        available: 54 * GIBI,
        capacity: 64 * GIBI,
        perSecond: -3 * MEBI,
        thresholds: [hard(100 * MEBI), { kind: "soft", value: GIBI, graceMs: 90_000 }],
      },
      {
        signal: "nodefs.available",
        unit: "bytes",
        available: 61 * GIBI,
        capacity: 250 * GIBI,
        thresholds: [hard(25 * GIBI)],
      },
      { signal: "pid.available", unit: "count", available: 32_100, capacity: 32_768, thresholds: [] },
    ],
    unmeasured: [],
    rankings: [
      {
        resource: "memory",
        unit: "bytes",
        pods: [
          { ...pod, priority: 0, usage: 90 * MEBI, request: 64 * MEBI, why: "above its request" },
          { uid: "uid-3", namespace: "default", name: "cache-3", priority: 0, request: 0, why: "not measured" },
        ],
      },
    ],
    evictions: [
      { at: Date.now() - 3_600_000, pod, signal: "memory.available", message: "The node was low on memory." },
    ],
  };
}
