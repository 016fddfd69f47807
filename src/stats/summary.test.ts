import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PodStorage } from "../model/pod-storage.ts";
import type { NodeSample, PodSample, UsageSample } from "./samples.ts";
import { type SummaryFacts, summaryOf } from "./summary.ts";

const AT = Date.UTC(2026, 0, 1, 0, 0, 10);
const TIME = "2026-01-01T00:00:10Z";
const at = { wall: AT, mono: 10_000 };

function usage(workingSet: number, more: Partial<NonNullable<UsageSample["memory"]>> = {}): UsageSample {
  const memory = { usage: workingSet + 10, workingSet, rss: 5, pageFaults: 6, majorPageFaults: 7, swap: 0, ...more };
  return { at, cpu: { usageNanos: 8 }, nanoCores: 9, memory, pids: 9, processes: 3 };
}

const noStall = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
/** Of cgroup v1, which does not measure it; Kubernetes' summary has it all the same. */
const noPressure = { full: noStall, some: noStall };
const shownCpu = { time: TIME, usageNanoCores: 9, usageCoreNanoSeconds: 8, psi: noPressure };
const shownMemory = (workingSet: number, more: object = {}) => ({
  time: TIME,
  ...more,
  usageBytes: workingSet + 10,
  workingSetBytes: workingSet,
  rssBytes: 5,
  pageFaults: 6,
  majorPageFaults: 7,
  psi: noPressure,
});
const shownIo = { time: TIME, psi: noPressure };
const shownSwap = { time: TIME, swapUsageBytes: 0 };
const space = { device: 1, capacityBytes: 100, availableBytes: 60, usedBytes: 30, inodes: 10, inodesFree: 4 };
const shownSpace = (usedBytes: number, inodesUsed: number) => ({
  time: TIME,
  availableBytes: 60,
  capacityBytes: 100,
  usedBytes,
  inodesFree: 4,
  inodes: 10,
  inodesUsed,
});

const packets = { rxPackets: 1, rxDropped: 2, txPackets: 3, txDropped: 4 };
const node: NodeSample = {
  usage: usage(5000),
  swap: { total: 50, free: 20 },
  network: [{ ...packets, name: "eth1", rxBytes: 1, rxErrors: 2, txBytes: 3, txErrors: 4 }],
  system: [{ name: "pods", cgroup: "/pods", startedAt: AT - 5000, usage: usage(300, { limit: 1000 }) }],
  classes: [],
  filesystems: [],
  disks: {
    at,
    node: space,
    image: space,
    imageBytes: 15,
    imageInodes: 2,
    containerBytes: 16,
    containerInodes: 3,
  },
  tasks: { most: 100, running: 40 },
  bootedAt: AT - 9000,
};
const pod: PodSample = {
  uid: "u1",
  name: "web",
  namespace: "default",
  startedAt: AT - 3000,
  usage: { ...usage(200), processes: 1 },
  network: [{ ...packets, name: "eth0", rxBytes: 11, rxErrors: 12, txBytes: 13, txErrors: 14 }],
  containers: [
    { id: "c1", name: "main", cgroup: "/c1", image: "", startedAt: AT - 2000, usage: usage(100, { limit: 400 }) },
  ],
};
const measured = (bytes: number) => ({ bytes, inodes: 1, at: AT, by: "walk" }) as const;
const storage: PodStorage = {
  parts: [
    { kind: "emptyDir", name: "data", isMemory: false, usage: measured(20) },
    { kind: "emptyDir", name: "shm", isMemory: true, path: "/v/shm", sizeLimit: 64, usage: measured(24) },
    { kind: "emptyDir", name: "later", isMemory: false },
    { kind: "volume", name: "config", isMemory: true, path: "/v/config", usage: measured(5) },
    { kind: "volume", name: "disk", isMemory: true, path: "/v/disk", claim: "claim-1" },
    { kind: "volume", name: "far", isMemory: true, path: "/v/disk", isRemote: true },
    { kind: "volume", name: "sick", isMemory: true, path: "/v/sick", hasDriver: true, claim: "claim-2" },
    { kind: "volume", name: "gone", isMemory: true, path: "/v/gone", usage: measured(5) },
    { kind: "log", name: "main", isMemory: false, usage: measured(3) },
    { kind: "layer", name: "main", isMemory: false, usage: measured(4) },
  ],
  bytes: 27,
  inodes: 3,
  isFresh: true,
};
const facts: SummaryFacts = {
  nodeName: "n1",
  memoryBytes: 8000,
  agentStartedAt: AT - 1000,
  node,
  pods: [pod],
  onlyCpuAndMemory: false,
  storage: new Map([["u1", storage]]),
  spaceAt: (path) =>
    ({
      "/v/config": space,
      "/v/disk": { ...space, usedBytes: 31 },
      "/v/shm": { ...space, inodes: 12 },
      "/v/sick": { ...space, usedBytes: 31, inodesUsed: 2, condition: { isAbnormal: true, message: "worn out" } },
    })[path],
};

describe("the summary", () => {
  // Through JSON: absent and undefined are one there.
  const shown = (of: SummaryFacts) => JSON.parse(JSON.stringify(summaryOf(of))) as { node: object; pods: object[] };

  test("node", () => {
    assert.deepEqual(shown(facts).node, {
      nodeName: "n1",
      systemContainers: [
        {
          name: "pods",
          startTime: "2026-01-01T00:00:05Z",
          cpu: shownCpu,
          memory: shownMemory(300, { availableBytes: 700 }),
          io: shownIo,
          swap: shownSwap,
        },
      ],
      startTime: "2026-01-01T00:00:01Z",
      cpu: shownCpu,
      memory: shownMemory(5000, { availableBytes: 3000 }),
      io: shownIo,
      network: {
        time: TIME,
        name: "",
        interfaces: [{ name: "eth1", rxBytes: 1, rxErrors: 2, txBytes: 3, txErrors: 4 }],
      },
      fs: shownSpace(30, 6),
      runtime: { imageFs: shownSpace(15, 2), containerFs: shownSpace(16, 3) },
      rlimit: { time: TIME, maxpid: 100, curproc: 40 },
      swap: { time: TIME, swapAvailableBytes: 20, swapUsageBytes: 30 },
    });
  });

  test("pod: eth0 stands for its network, an unlimited memory has nothing available, unmeasured volumes are missing", () => {
    assert.deepEqual(shown(facts).pods, [
      {
        podRef: { name: "web", namespace: "default", uid: "u1" },
        startTime: "2026-01-01T00:00:07Z",
        containers: [
          {
            name: "main",
            startTime: "2026-01-01T00:00:08Z",
            cpu: shownCpu,
            memory: shownMemory(100, { availableBytes: 300 }),
            io: shownIo,
            rootfs: shownSpace(4, 1),
            logs: shownSpace(3, 1),
            swap: shownSwap,
          },
        ],
        cpu: shownCpu,
        memory: shownMemory(200),
        io: shownIo,
        network: {
          time: TIME,
          name: "eth0",
          rxBytes: 11,
          rxErrors: 12,
          txBytes: 13,
          txErrors: 14,
          interfaces: [{ name: "eth0", rxBytes: 11, rxErrors: 12, txBytes: 13, txErrors: 14 }],
        },
        volume: [
          { ...shownSpace(20, 1), name: "data" },
          { ...shownSpace(24, 1), capacityBytes: 64, availableBytes: 40, inodes: 12, name: "shm" },
          { ...shownSpace(5, 1), name: "config" },
          { ...shownSpace(31, 6), name: "disk", pvcRef: { name: "claim-1", namespace: "default" } },
          { ...shownSpace(31, 6), name: "far" },
          {
            ...shownSpace(31, 2),
            name: "sick",
            pvcRef: { name: "claim-2", namespace: "default" },
            volumeHealthStats: { abnormal: true },
          },
        ],
        "ephemeral-storage": shownSpace(27, 3),
        process_stats: { process_count: 3 },
        swap: shownSwap,
      },
    ]);
  });

  test("only CPU and memory: nothing else", () => {
    const { node: of, pods } = shown({ ...facts, onlyCpuAndMemory: true });
    assert.deepEqual(Object.keys(of), ["nodeName", "systemContainers", "startTime", "cpu", "memory", "swap"]);
    assert.deepEqual(Object.keys(pods[0] ?? {}), ["podRef", "startTime", "containers", "cpu", "memory", "swap"]);
  });

  test("the agent's own cgroup began with the agent; usage that is not known yet is 0, as in Kubernetes", () => {
    const { nanoCores: _unknown, ...first } = usage(300);
    const kubelet = { name: "kubelet", cgroup: "/agent", startedAt: AT - 5000, usage: first };
    const [found] = (shown({ ...facts, node: { ...node, system: [kubelet] } }).node as { systemContainers: object[] })
      .systemContainers as { startTime: string; cpu: object }[];
    assert.equal(found?.startTime, "2026-01-01T00:00:09Z");
    assert.deepEqual(found?.cpu, { ...shownCpu, usageNanoCores: 0 });
  });

  test("pressure stalls are shown where the kernel has them", () => {
    const stall = { avg10: 1, avg60: 2, avg300: 3, total: 4 };
    const psi = { some: stall, full: stall };
    const cpu = { usageNanos: 8, psi };
    const { pods } = shown({ ...facts, pods: [{ ...pod, usage: { ...pod.usage, cpu, io: { psi } } }] });
    const [first] = pods as { cpu?: object; io?: object }[];
    assert.deepEqual(
      [first?.cpu, first?.io],
      [
        { ...shownCpu, psi },
        { time: TIME, psi },
      ],
    );
  });
});

test("swap that a container may still use, never less than nothing", () => {
  const swaps = [
    usage(100, { swap: 30, swapLimit: 100 }),
    usage(100, { swap: 130, swapLimit: 100 }),
    usage(100, { swap: 30 }),
  ].map((of) => {
    const one = { ...pod, usage: of, containers: [] };
    const { pods } = summaryOf({ ...facts, pods: [one] }) as unknown as { pods: { swap: object }[] };
    return pods[0]?.swap;
  });
  assert.deepEqual(swaps, [
    { time: TIME, swapAvailableBytes: 70, swapUsageBytes: 30 },
    { time: TIME, swapAvailableBytes: 0, swapUsageBytes: 130 },
    { time: TIME, swapUsageBytes: 30 },
  ]);
});

test("what was not measured is left out: filesystems of images, volumes and layers", () => {
  const bare = { ...storage, parts: [] };
  const known = { ...facts, node: { ...node, disks: { at, node: space } }, storage: new Map([["u1", bare]]) };
  const text = JSON.stringify(summaryOf(known));
  const { node: shownNode, pods } = JSON.parse(text) as { node: { runtime: object }; pods: object[] };
  assert.deepEqual(shownNode.runtime, {});
  assert.doesNotMatch(JSON.stringify(pods), /"volume"|"rootfs"|"logs"/);
  const nothing = JSON.stringify(summaryOf({ ...facts, node: { ...node, disks: { at } } }));
  assert.doesNotMatch(nothing, /"imageFs"|"rootfs"|"ephemeral-storage"/);
});
