import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { CgroupMount } from "../host/cgroups.ts";
import { CgroupUsageReader } from "./usage.ts";

const root = mkdtempSync(join(tmpdir(), "cgroup-usage-"));
after(() => rmSync(root, { recursive: true }));

function write(directory: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(join(root, directory), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, directory, name), text);
}

describe("cgroup version 1", () => {
  const controllers = ["memory", "cpuacct", "cpu", "pids"];
  const mounts = controllers.map(
    (name): CgroupMount => ({ version: 1, mountpoint: join(root, "v1", name), controllers: [name] }),
  );
  const stat =
    "cache 1\nrss 2\ninactive_file 7\ntotal_rss 3000\ntotal_swap 5\ntotal_pgfault 11\ntotal_pgmajfault 12\npgfault 9\npgmajfault 8\n";
  write("v1/memory/pods/pod1/c-abc", {
    "memory.usage_in_bytes": "10000\n",
    "memory.limit_in_bytes": "9223372036854771712\n",
    "memory.memsw.limit_in_bytes": "77000\n",
    "memory.stat": `${stat}total_inactive_file 4000\n`,
    "cgroup.procs": "42\n43\n",
  });
  write("v1/memory/pods", {
    "memory.usage_in_bytes": "100\n",
    "memory.limit_in_bytes": "5000\n",
    "memory.stat": "total_inactive_file 200\n",
  });
  write("v1/cpuacct/pods/pod1/c-abc", { "cpuacct.usage": "123456789\n" });
  write("v1/pids/pods/pod1/c-abc", { "pids.current": "7\n" });
  const reader = new CgroupUsageReader(mounts);

  test("the working set is the usage without inactive page cache; the kernel's unlimited is no limit", () => {
    assert.deepEqual(reader.read("/pods/pod1/c-abc"), {
      cpu: { usageNanos: 123_456_789 },
      memory: {
        usage: 10_000,
        workingSet: 6000,
        rss: 3000,
        pageFaults: 11,
        majorPageFaults: 12,
        swap: 5,
        own: { pageFaults: 9, majorPageFaults: 8 },
        swapLimit: 77_000,
      },
      pids: 7,
      processes: 2,
    });
  });

  test("a working set is never negative, and a limit is shown", () => {
    const { workingSet, limit } = reader.memory("/pods") ?? {};
    assert.deepEqual({ workingSet, limit }, { workingSet: 0, limit: 5000 });
  });

  test("a cgroup that is gone has no usage", () => {
    assert.deepEqual(reader.read("/pods/gone"), {});
    assert.equal(reader.createdAt("/pods/gone"), undefined);
  });

  test("a container is found by its id, and a process in it", () => {
    assert.equal(reader.childOf("/pods/pod1", "abc"), "/pods/pod1/c-abc");
    assert.equal(reader.childOf("/pods/pod1", "xyz"), undefined);
    assert.equal(reader.childOf("/pods/gone", "abc"), undefined);
    assert.equal(reader.processIn("/pods/pod1/c-abc"), 42);
    assert.equal(reader.processIn("/pods"), undefined);
    assert.deepEqual(reader.processesBelow("/pods"), [42, 43]);
    assert.deepEqual(reader.processesBelow("/absent"), []);
  });
});

describe("cgroup version 2", () => {
  const psi = "some avg10=1.50 avg60=0.25 avg300=0.00 total=77\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
  const stall = {
    some: { avg10: 1.5, avg60: 0.25, avg300: 0, total: 77 },
    full: { avg10: 0, avg60: 0, avg300: 0, total: 5 },
  };
  write("v2/pod", {
    "memory.current": "9000\n",
    "memory.max": "max\n",
    "memory.swap.current": "3\n",
    "memory.swap.max": "100\n",
    "memory.stat": "anon 5000\nfile 4000\ninactive_file 1000\npgfault 1\npgmajfault 2\n",
    "memory.pressure": psi,
    "cpu.stat": "usage_usec 5000\nuser_usec 1\n",
    "cpu.pressure": psi,
    "io.pressure": psi,
    "pids.current": "4\n",
  });
  write("v2", { "memory.stat": "anon 500\nfile 300\ninactive_file 100\n" });
  const reader = new CgroupUsageReader([{ version: 2, mountpoint: join(root, "v2"), controllers: [] }]);

  test("usage, limits and pressure stalls", () => {
    assert.deepEqual(reader.read("/pod"), {
      cpu: { usageNanos: 5_000_000, psi: stall },
      memory: {
        usage: 9000,
        workingSet: 8000,
        rss: 5000,
        pageFaults: 1,
        majorPageFaults: 2,
        swap: 3,
        swapLimit: 100,
        psi: stall,
      },
      pids: 4,
      io: { psi: stall },
    });
  });

  test("the topmost cgroup counts anonymous memory and page cache", () => {
    assert.equal(reader.memory("/")?.usage, 800);
    assert.equal(reader.memory("/")?.workingSet, 700);
  });
});

test("without cgroups nothing is known", () => {
  const reader = new CgroupUsageReader([]);
  assert.deepEqual([reader.read("/"), reader.memory("/"), reader.childOf("/", "a")], [{}, undefined, undefined]);
});
