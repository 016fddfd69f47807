import assert from "node:assert/strict";
import { test } from "node:test";
import type { CgroupDetails, CpuDetails } from "../model/usage.ts";
import { cadvisorMetrics } from "./cadvisor-metrics.ts";
import { cgroupRows, withOomKills } from "./cgroup-rows.ts";
import type { MachineDescription } from "./machine-description.ts";
import type { NodeSample, PodSample, UsageSample } from "./samples.ts";

const AT = 1_700_000_000_500;
const details: CgroupDetails = {
  cpu: {
    userNanos: 1e9,
    systemNanos: 5e8,
    periods: 10,
    throttledPeriods: 2,
    throttledNanos: 25e7,
    burstPeriods: 0,
    burstNanos: 0,
    shares: 102,
    period: 100_000,
    quota: 50_000,
  },
  memory: {
    cache: 1,
    mappedFile: 2,
    activeFile: 3,
    inactiveFile: 4,
    kernel: 5,
    peak: 6,
    failures: 7,
    limit: 64,
    swapLimit: 0,
    reservation: 0,
  },
  disks: [{ device: "/dev/a", major: 8, minor: 0, bytes: { Read: 4096, Write: 1 }, operations: { Read: 1, Write: 2 } }],
  processes: { processes: 2, descriptors: 9, sockets: 3, threads: 4, mostThreads: 0, openFiles: -1 },
  oomKills: 1,
};
const times = (total: number) => ({ avg10: 0, avg60: 0, avg300: 0, total });
const psi = { some: times(2_500_000), full: times(500_000) };

function usage(more: Partial<UsageSample> = {}): UsageSample {
  const memory = { usage: 20, workingSet: 16, rss: 8, pageFaults: 30, majorPageFaults: 31, swap: 0, psi };
  return { at: { wall: AT, mono: 0 }, cpu: { usageNanos: 15e8, psi }, io: { psi }, memory, details, ...more };
}

const eth0 = { name: "eth0", rxBytes: 1, rxPackets: 2, rxErrors: 3, rxDropped: 4 };
const network = [{ ...eth0, txBytes: 5, txPackets: 6, txErrors: 7, txDropped: 8 }];
const space = { device: 0x800, capacityBytes: 100, availableBytes: 60, usedBytes: 30, inodes: 10, inodesFree: 4 };
const read = { reads: 1, readsMerged: 2, sectorsRead: 3, readMs: 4000 };
const written = { writes: 5, writesMerged: 6, sectorsWritten: 7, writeMs: 8000 };
const activity = { ...read, ...written, inProgress: 9, ioMs: 10_000, weightedMs: 11_000 };
const node: NodeSample = {
  bootedAt: 5000,
  usage: usage(),
  swap: { total: 0, free: 0 },
  network,
  system: [{ name: "pods", cgroup: "/kubepods", startedAt: 6000, usage: usage() }],
  classes: [{ name: "/kubepods/burstable", cgroup: "/kubepods/burstable", startedAt: 7000, usage: usage() }],
  disks: { at: { wall: 0, mono: 0 } },
  filesystems: [
    { device: "/dev/a1", type: "ext4", mountpoint: "/", space, activity },
    { device: "/dev/a", type: "ext4", mountpoint: "/same", space, activity },
  ],
};
const at = (id: string) => `/kubepods/burstable/podu1/${id}`;
const pod: PodSample = {
  uid: "u1",
  name: "web",
  namespace: "default",
  startedAt: 8000,
  cgroup: "/kubepods/burstable/podu1",
  usage: usage(),
  network,
  containers: [{ id: "c1", name: "main", cgroup: at("c1"), image: 'a"b', startedAt: 9500, usage: usage() }],
  sandbox: { id: "s1", name: "", cgroup: at("s1"), image: "", startedAt: 8000, usage: usage() },
};
const machine = {
  at: AT,
  version: "v1",
  cores: 4,
  physicalCores: 2,
  sockets: 1,
  memoryBytes: 1000,
  swapBytes: 50,
  kernel: "6",
  osImage: "Linux",
  bootId: "b",
  machineId: "m",
  systemUuid: "u",
} as MachineDescription; // reason: the page shows no more of it

function page(pods: readonly PodSample[] = [pod]): string {
  return [...cadvisorMetrics({ machine, rows: cgroupRows(node, pods, { memoryBytes: 4096 }), now: AT + 4000 })].join(
    "",
  );
}

test("a cgroup of the system that is also one of a class has one row", () => {
  const shared = { name: "kubepods", cgroup: "/kubepods", startedAt: 0, usage: usage() };
  const rows = [...cgroupRows({ ...node, system: [shared], classes: [shared] }, [], { memoryBytes: 4096 })];
  assert.deepEqual(
    rows.map(({ path }) => path),
    ["/", "/kubepods"],
  );
});

const lines = (name: string, of = page()): string[] => of.split("\n").filter((line) => line.startsWith(`${name}{`));
const MAIN = `container="main",id="${at("c1")}",image="a\\"b",name="c1",namespace="default",pod="web"`;
const SANDBOX = `container="",id="${at("s1")}",image="",name="s1",namespace="default",pod="web"`;
const POD = 'container="",id="/kubepods/burstable/podu1",image="",name="",namespace="default",pod="web"';
const raw = (path: string) => `container="",id="${path}",image="",name="",namespace="",pod=""`;
const [ROOT, ALL, CLASS] = [raw("/"), raw("/kubepods"), raw("/kubepods/burstable")];

test("every cgroup once, with the labels of the kubelet and the time of the sample", () => {
  assert.deepEqual(
    lines("container_memory_working_set_bytes"),
    [ROOT, ALL, CLASS, POD, SANDBOX, MAIN].map((labels) => `container_memory_working_set_bytes{${labels}} 16 ${AT}`),
  );
});

test("the limit of the node is its memory; faults of a cgroup itself are apart where the kernel counts them so", () => {
  const [root, all] = lines("container_spec_memory_limit_bytes");
  assert.deepEqual(
    [root, all],
    [`container_spec_memory_limit_bytes{${ROOT}} 4096`, `container_spec_memory_limit_bytes{${ALL}} 64`],
  );
  const own = { pageFaults: 3, majorPageFaults: 4 };
  const memory = { usage: 20, workingSet: 16, rss: 8, pageFaults: 30, majorPageFaults: 31, swap: 0, own };
  const faults = lines("container_memory_failures_total", page([{ ...pod, usage: usage({ memory }) }]));
  assert.deepEqual(
    faults.filter((line) => line.includes(POD)),
    [
      ["pgfault", "container", 3],
      ["pgmajfault", "container", 4],
      ["pgfault", "hierarchy", 30],
      ["pgmajfault", "hierarchy", 31],
    ].map(
      ([type, scope, value]) =>
        `container_memory_failures_total{${POD},failure_type="${type}",scope="${scope}"} ${value} ${AT}`,
    ),
  );
});

test("network only of sandboxes and of the node; filesystems and their devices only of the node", () => {
  assert.deepEqual(
    lines("container_network_transmit_packets_dropped_total"),
    [ROOT, SANDBOX].map((l) => `container_network_transmit_packets_dropped_total{${l},interface="eth0"} 8 ${AT}`),
  );
  assert.deepEqual(lines("container_fs_usage_bytes"), [
    `container_fs_usage_bytes{${ROOT},device="/dev/a1"} 30 ${AT}`,
    `container_fs_usage_bytes{${ROOT},device="/dev/a"} 30 ${AT}`,
  ]);
  assert.deepEqual(
    lines("container_fs_reads_total").filter((line) => line.includes(ROOT)),
    [
      `container_fs_reads_total{${ROOT},device="/dev/a"} 1 ${AT}`,
      `container_fs_reads_total{${ROOT},device="/dev/a1"} 1 ${AT}`,
    ],
    "a device that is a disk and a filesystem is one series",
  );
  assert.deepEqual(
    lines("container_fs_read_seconds_total")[0],
    `container_fs_read_seconds_total{${ROOT},device="/dev/a1"} 4 ${AT}`,
  );
});

test("limits and starts have no time, the last scrape has that of the scrape", () => {
  const of = (name: string): string | undefined => lines(name).find((line) => line.includes(MAIN));
  assert.equal(of("container_spec_cpu_quota"), `container_spec_cpu_quota{${MAIN}} 50000`);
  assert.equal(of("container_spec_memory_limit_bytes"), `container_spec_memory_limit_bytes{${MAIN}} 64`);
  assert.equal(of("container_start_time_seconds"), `container_start_time_seconds{${MAIN}} 9`);
  assert.equal(of("container_last_seen"), `container_last_seen{${MAIN}} 1700000004 ${AT + 4000}`);
});

test("counters in their units", () => {
  const of = (name: string): string | undefined => lines(name).find((line) => line.includes(MAIN));
  assert.equal(
    of("container_cpu_usage_seconds_total"),
    `container_cpu_usage_seconds_total{${MAIN},cpu="total"} 1.5 ${AT}`,
  );
  assert.equal(
    of("container_cpu_cfs_throttled_seconds_total"),
    `container_cpu_cfs_throttled_seconds_total{${MAIN}} 0.25 ${AT}`,
  );
  assert.equal(
    of("container_pressure_io_waiting_seconds_total"),
    `container_pressure_io_waiting_seconds_total{${MAIN}} 2.5 ${AT}`,
  );
  assert.equal(of("container_ulimits_soft"), `container_ulimits_soft{${MAIN},ulimit="max_open_files"} -1 ${AT}`);
  assert.equal(of("container_oom_events_total"), `container_oom_events_total{${MAIN}} 1 ${AT}`);
});

test("a cgroup without a quota has none of its metrics, and one whose files are gone has only its start", () => {
  const { quota: _, ...unlimited } = details.cpu as CpuDetails; // reason: it is there
  const free = {
    ...pod,
    containers: [{ ...pod.containers[0], usage: usage({ details: { ...details, cpu: unlimited } }) }],
  };
  const text = page([free as PodSample]); // reason: a copy of one above
  for (const name of ["container_cpu_cfs_periods_total", "container_spec_cpu_quota"]) {
    assert.deepEqual(
      lines(name, text).filter((line) => line.includes(MAIN)),
      [],
    );
  }
  const gone = { ...pod, containers: [{ ...pod.containers[0], usage: { at: { wall: AT, mono: 0 } } }] };
  const shown = page([gone as PodSample])
    .split("\n")
    .filter((line) => line.includes(MAIN)); // reason: as above
  assert.deepEqual(
    shown.map((line) => line.split("{")[0]).filter((name) => /cpu_u|memory|network|spec/.test(name ?? "")),
    [],
  );
});

test("each family has one head, the machine its identity, and no error is reported", () => {
  const heads = page()
    .split("\n")
    .filter((line) => line.startsWith("# TYPE"));
  assert.equal(new Set(heads).size, heads.length);
  assert.equal(lines("machine_cpu_cores")[0], `machine_cpu_cores{boot_id="b",machine_id="m",system_uuid="u"} 4 ${AT}`);
  assert.match(page(), /^container_scrape_error 0$/m);
  assert.match(page(), /^machine_scrape_error 0$/m);
  assert.match(page(), /^cadvisor_version_info\{.*kernelVersion="6",osVersion="Linux"\} 1$/m);
});

test("kills of earlier instances of a container count, where the kernel has forgotten them", () => {
  const known = { of: (uid: string, container: string) => (`${uid}/${container}` === "u1/main" ? 3 : 0) };
  const row = {
    path: "/c",
    kind: "container",
    startedAt: 0,
    usage: usage(),
    details,
    network: [],
    filesystems: [],
  } as const;
  const kills = (names: object): number => withOomKills({ ...row, ...names }, known).details.oomKills;
  assert.deepEqual(
    [kills({ uid: "u1", container: "main" }), kills({ uid: "u1", container: "side" }), kills({})],
    [3, 1, 1],
  );
});
