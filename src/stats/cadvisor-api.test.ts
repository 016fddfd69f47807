import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type CadvisorStore, cadvisorApi } from "./cadvisor-api.ts";
import type { CgroupRow } from "./cgroup-rows.ts";
import type { MachineDescription } from "./machine-description.ts";

const AT = Date.UTC(2026, 0, 1);
const space = { device: 1, capacityBytes: 100, availableBytes: 60, usedBytes: 30, inodes: 10, inodesFree: 4 };

function row(path: string, more: Partial<CgroupRow> = {}): CgroupRow {
  const memory = { usage: 20, workingSet: 16, rss: 8, pageFaults: 30, majorPageFaults: 31, swap: 0 };
  const usage = { at: { wall: AT, mono: 0 }, nanoCores: 25e7, cpu: { usageNanos: 15e8 }, memory };
  const details = { disks: [], oomKills: 0 };
  return { path, kind: "raw", startedAt: AT, usage, details, network: [], filesystems: [], ...more };
}

/** Two NUMA nodes of one core each with two threads; the first has an L3 cache that it shares with nobody. */
const topology = {
  cpus: [0, 2, 1, 3].map((cpu) => ({ cpu, core: cpu % 2, socket: 0, numa: cpu % 2, uncore: 0 })),
  nodes: [0, 1].map((id) => ({
    id,
    memoryBytes: 64,
    hugePages: [{ pageBytes: 2 ** 21, pages: 3 }],
    distances: [10, 21],
  })),
  offline: [],
};
const cache = (level: number, cpus: number) => ({ id: 7, size: 1024, type: "Unified", level, cpus });
const machine = {
  at: AT,
  version: "v1.36",
  cores: 4,
  kernel: "6.1",
  disks: {},
  networkDevices: [],
  vendorId: "AuthenticAMD",
  hugePages: [{ pageBytes: 2 ** 21, pages: 6 }],
  topology,
  coreIds: new Map([[1, 8]]),
  caches: new Map([
    [0, [cache(1, 2), cache(3, 2)]],
    [1, [cache(2, 2), cache(3, 4)]],
  ]),
} as unknown;
const store: CadvisorStore = {
  machine: machine as MachineDescription, // reason: what the API shows of it
  rows: [
    row("/", { kind: "root", filesystems: [{ device: "/dev/a", type: "ext4", mountpoint: "/", space }] }),
    row("/kubepods"),
    row("/kubepods/podu1", { pod: "web", namespace: "default", uid: "u1" }),
    row("/kubepods/podu1/c1", {
      kind: "container",
      id: "c1",
      container: "main",
      pod: "web",
      namespace: "default",
      uid: "u1",
    }),
  ],
};

function ask(target: string): unknown {
  const { pathname, searchParams } = new URL(target, "http://localhost");
  const result = cadvisorApi(store, pathname, searchParams);
  return "json" in result ? result.json : result;
}

/** The fields that a test looks at. */
type Shown = Record<string, Record<string, unknown> & { name?: string }>;

describe("cAdvisor's API", () => {
  test("lists versions and request types where a path is incomplete", () => {
    assert.deepEqual(ask("/api/"), { status: 400, text: "Supported API versions: v1.0,v1.1,v1.2,v1.3,v2.0,v2.1" });
    assert.deepEqual(ask("/api/v1.0/"), { status: 400, text: 'Supported request types: "containers,machine"' });
  });

  const wrong = [
    { path: "/api/v3.0/machine", text: 'unsupported API version "v3.0"' },
    { path: "/api/v1.0/subcontainers/", text: 'unknown request type "subcontainers"' },
    { path: "/api/v2.0/nothing", text: 'unknown request type "nothing"' },
    { path: "/api/v2.0/machinestats", text: 'unknown request type "machinestats"' },
    { path: "/api/v2.0/stats/?type=rkt", text: "unknown 'type' \"rkt\"" },
    { path: "/api/v2.0/stats/?count=many", text: "failed to parse 'count' option: many" },
    { path: "/api/v2.1/stats/?count=-2", text: "invalid 'count' option: only -1 and larger values allowed, not -2" },
    {
      path: "/api/v1.3/containers/nope",
      text: 'failed to get container "/nope" with error: unknown container "/nope"',
    },
  ];
  test("a wrong request is an error of cAdvisor's words, with its status", () => {
    for (const { path, text } of wrong) assert.deepEqual(ask(path), { status: 500, text }, path);
  });

  test("the machine has its NUMA nodes with cores and caches; page sizes are in KiB", () => {
    const shown = ask("/api/v1.3/machine") as { vendor_id: string; hugepages: unknown; topology: object[] };
    assert.equal(shown.vendor_id, "AuthenticAMD");
    assert.deepEqual(shown.hugepages, [{ page_size: 2048, num_pages: 6 }]);
    const level = (of: number) => ({ id: 7, size: 1024, type: "Unified", level: of });
    const common = { memory: 64, hugepages: [{ page_size: 2048, num_pages: 3 }], distances: [10, 21] };
    assert.deepEqual(shown.topology, [
      {
        ...common,
        node_id: 0,
        cores: [{ core_id: 0, thread_ids: [0, 2], caches: [level(1)], uncore_caches: null, socket_id: 0 }],
        caches: [level(3)],
      },
      {
        ...common,
        node_id: 1,
        cores: [{ core_id: 8, thread_ids: [1, 3], caches: [level(2)], uncore_caches: [level(3)], socket_id: 0 }],
        caches: [],
      },
    ]);
  });

  test("1.x: a cgroup with those right below it, and all below it", () => {
    const root = ask("/api/v1.3/containers/") as { name: string; subcontainers: unknown; stats: Shown[] };
    assert.deepEqual([root.name, root.subcontainers], ["/", [{ name: "/kubepods" }]]);
    assert.deepEqual(root.stats[0]?.["cpu"]?.["usage"], { total: 15e8, user: 0, system: 0 });
    assert.equal(root.stats[0]?.["memory"]?.["working_set"], 16);
    const below = ask("/api/v1.1/subcontainers/kubepods/podu1") as { name: string; spec: { labels: object } }[];
    assert.deepEqual(
      below.map(({ name }) => name),
      ["/kubepods/podu1", "/kubepods/podu1/c1"],
    );
    assert.deepEqual(below[1]?.spec.labels, {
      "io.kubernetes.container.name": "main",
      "io.kubernetes.pod.name": "web",
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.pod.uid": "u1",
    });
    assert.deepEqual(Object.keys(ask("/api/v1.2/docker/c1") as object), ["/kubepods/podu1/c1"]);
    assert.deepEqual(ask("/api/v1.3/events/"), []);
  });

  test("a cgroup whose parent is not known is below the nearest one that is, so that a client finds it from the top", () => {
    const nested = { ...store, rows: [row("/"), row("/a/b/kubepods"), row("/a/b/kubepods/pod1")] };
    const result = cadvisorApi(nested, "/api/v1.3/containers/", new URLSearchParams());
    assert.deepEqual("json" in result && (result.json as { subcontainers: unknown }).subcontainers, [
      { name: "/a/b/kubepods" },
    ]);
  });

  test("2.x: specs, samples and summaries by path, with those below if they are asked for", () => {
    assert.deepEqual(Object.keys(ask("/api/v2.0/stats/kubepods") as object), ["/kubepods"]);
    assert.deepEqual(Object.keys(ask("/api/v2.0/spec/kubepods?recursive=true") as object).length, 3);
    assert.deepEqual(Object.keys(ask("/api/v2.0/stats/c1?type=docker") as object), ["/kubepods/podu1/c1"]);
    const summary = ask("/api/v2.0/summary/kubepods") as Shown;
    assert.deepEqual(summary["/kubepods"]?.["latest_usage"], { cpu: 250, memory: 16 });
    assert.equal("/" in (ask("/api/v2.1/stats/?recursive=true") as object), false, "2.1 leaves out the root");
    assert.equal(ask("/api/v2.0/version"), "v1.36");
    assert.equal((ask("/api/v2.0/attributes") as { kernel_version: string }).kernel_version, "6.1");
    assert.equal((ask("/api/v2.0/machine") as { num_cores: number }).num_cores, 4);
    assert.equal((ask("/api/v2.0/storage") as { capacity: number }[])[0]?.capacity, 100);
    assert.equal((ask("/api/v2.0/storage?label=root") as unknown[]).length, 1);
    assert.deepEqual(ask("/api/v2.0/storage?label=images"), []);
  });

  test("a thousand cgroups are shown without looking through all of them for each", () => {
    const rows = Array.from({ length: 1000 }, (_, index) => row(`/kubepods/pod${index >> 2}/c${index}`));
    const many = { ...store, rows: [row("/"), row("/kubepods"), ...rows] };
    let reads = 0;
    for (const one of many.rows) {
      const { path } = one;
      Object.defineProperty(one, "path", { get: () => (reads++, path) });
    }
    const result = cadvisorApi(many, "/api/v1.3/subcontainers/", new URLSearchParams());
    assert.equal("json" in result && (result.json as unknown[]).length, 1002);
    assert.ok(reads < 20 * many.rows.length, `${reads} reads`);
  });
});
