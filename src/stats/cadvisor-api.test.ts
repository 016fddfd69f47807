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

const machine = { at: AT, version: "v1.36", cores: 4, kernel: "6.1", disks: {}, networkDevices: [] } as unknown;
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
    assert.deepEqual((ask("/api/v1.0/subcontainers/") as { status: number }).status, 400);
  });

  test("1.x: a cgroup with those right below it, and all below it", () => {
    const root = ask("/api/v1.3/containers/") as { name: string; subcontainers: unknown; stats: Shown[] };
    assert.deepEqual([root.name, root.subcontainers], ["/", [{ name: "/kubepods" }]]);
    assert.deepEqual(root.stats[0]?.["cpu"]?.["usage"], { total: 15e8, user: 0, system: 0 });
    assert.equal(root.stats[0]?.["memory"]?.["working_set"], 16);
    const below = ask("/api/v1.1/subcontainers/kubepods/podu1") as { name: string; labels: object }[];
    assert.deepEqual(
      below.map(({ name }) => name),
      ["/kubepods/podu1", "/kubepods/podu1/c1"],
    );
    assert.deepEqual(below[1]?.labels, {
      "io.kubernetes.container.name": "main",
      "io.kubernetes.pod.name": "web",
      "io.kubernetes.pod.namespace": "default",
      "io.kubernetes.pod.uid": "u1",
    });
    assert.equal((ask("/api/v1.3/containers/nope") as { status: number }).status, 500);
    assert.deepEqual(Object.keys(ask("/api/v1.2/docker/c1") as object), ["/kubepods/podu1/c1"]);
    assert.deepEqual(ask("/api/v1.3/events/"), []);
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
  });
});
