import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeSample, PodSample, UsageSample } from "./samples.ts";
import { usageReport } from "./usage-report.ts";

const at = { wall: 5000, mono: 1 };
const stall = { avg10: 3, avg60: 2, avg300: 1, total: 9 };
const memory = { usage: 9, workingSet: 4, rss: 1, pageFaults: 0, majorPageFaults: 0, swap: 0 };
const idle: UsageSample = { at, cpu: { usageNanos: 1 }, memory };
const busy: UsageSample = {
  ...idle,
  cpu: { usageNanos: 1, psi: { some: stall, full: stall } },
  memory: { ...memory, limit: 8 },
  nanoCores: 7,
  pids: 2,
};
const one = { rxPackets: 0, rxErrors: 0, rxDropped: 0, txPackets: 0, txErrors: 0, txDropped: 0 };
const node: NodeSample = {
  bootedAt: 0,
  usage: { ...busy, io: { psi: { some: stall, full: stall } } },
  swap: { total: 10, free: 6 },
  network: [
    { ...one, name: "eth0", rxBytes: 1, txBytes: 2 },
    { ...one, name: "eth1", rxBytes: 10, txBytes: 20 },
  ],
  system: [],
  classes: [],
  filesystems: [],
  disks: { at },
};
const pod = (name: string, usage: UsageSample): PodSample => {
  const container = { id: "c", name: "main", cgroup: "/c", image: "", startedAt: 0, usage };
  return { uid: `u-${name}`, namespace: "default", name, startedAt: 0, usage, containers: [container] };
};
const space = { device: 1, capacityBytes: 100, availableBytes: 40, usedBytes: 60, inodes: 1, inodesFree: 1 };

const diskTraffic = { readBytes: 5, writtenBytes: 6 };

test("pods with the same CPU usage are in order of their memory, then of their names", () => {
  const large = { ...idle, memory: { ...memory, workingSet: 5 } };
  const pods = [pod("b", idle), pod("c", large), pod("a", idle)];
  const { pods: lines } = usageReport({ node, pods, diskTraffic, cores: 1, memoryBytes: 1 });
  assert.deepEqual(
    lines.map(({ name }) => name),
    ["c", "a", "b"],
  );
});

test("a report has node, pods and containers, the busiest pods first", () => {
  const pods = [pod("idle", idle), { ...pod("busy", busy), network: node.network }];
  const measured = { ...node, disks: { at, node: space } };
  const report = usageReport({ node: measured, pods, diskTraffic, cores: 2, memoryBytes: 64 });
  const line = { at: 5000, workingSetBytes: 4, memoryLimitBytes: 8, nanoCores: 7, tasks: 2 };
  assert.deepEqual(report, {
    cores: 2,
    memoryBytes: 64,
    node: {
      ...line,
      pressure: { cpu: 3, io: 3 },
      network: { rxBytes: 11, txBytes: 22 },
      swap: { totalBytes: 10, freeBytes: 6 },
      disk: { capacityBytes: 100, availableBytes: 40 },
      diskTraffic,
    },
    pods: [
      {
        uid: "u-busy",
        namespace: "default",
        name: "busy",
        ...line,
        pressure: { cpu: 3 },
        network: { rxBytes: 11, txBytes: 22 },
        containers: [{ name: "main", ...line, pressure: { cpu: 3 } }],
      },
      {
        uid: "u-idle",
        namespace: "default",
        name: "idle",
        at: 5000,
        workingSetBytes: 4,
        containers: [{ name: "main", at: 5000, workingSetBytes: 4 }],
      },
    ],
  });
});
