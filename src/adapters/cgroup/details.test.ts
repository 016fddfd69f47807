import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { CgroupMount } from "../host/cgroups.ts";
import { CgroupDetailsReader } from "./details.ts";
import { DiskReaderV1 } from "./disks.ts";
import { softLimit } from "./process-counts.ts";

const root = mkdtempSync(join(tmpdir(), "cgroup-details-"));
after(() => rmSync(root, { recursive: true }));

function write(directory: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(join(root, directory), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, directory, name), text);
}

describe("cgroup version 1", () => {
  const mounts = ["memory", "cpuacct", "cpu", "pids", "blkio"].map(
    (name): CgroupMount => ({ version: 1, mountpoint: join(root, "v1", name), controllers: [name] }),
  );
  write("v1/cpu/c", {
    "cpu.stat": "nr_periods 5\nnr_throttled 3\nthrottled_time 200\nnr_bursts 1\nburst_time 7\n",
    "cpu.shares": "102\n",
    "cpu.cfs_period_us": "100000\n",
    "cpu.cfs_quota_us": "-1\n",
    "cgroup.procs": `${process.pid}\n`,
  });
  write("v1/cpuacct/c", { "cpuacct.stat": "user 150\nsystem 50\n" });
  write("v1/memory/c", {
    "memory.stat": "total_cache 1\ntotal_mapped_file 2\ntotal_active_file 3\ntotal_inactive_file 4\n",
    "memory.max_usage_in_bytes": "9\n",
    "memory.failcnt": "8\n",
    "memory.kmem.usage_in_bytes": "7\n",
    "memory.limit_in_bytes": "64\n",
    "memory.memsw.limit_in_bytes": "9223372036854771712\n",
    "memory.soft_limit_in_bytes": "32\n",
    "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
  });
  write("v1/pids/c", { "pids.current": "3\n", "pids.max": "max\n" });
  write("v1/blkio/c", {
    "blkio.bfq.io_service_bytes_recursive": "Total 0\n",
    "blkio.throttle.io_service_bytes_recursive": "999:1 Read 10\n999:1 Write 20\n999:1 Total 30\nTotal 30\n",
    "blkio.throttle.io_serviced_recursive": "999:1 Read 1\n999:1 Write 2\n999:1 Total 3\nTotal 3\n",
  });
  const reader = new CgroupDetailsReader(mounts);

  test("CPU in nanoseconds from ticks; no quota is none", () => {
    const { cpu } = reader.read("/c") ?? {};
    assert.deepEqual(cpu, {
      userNanos: 15e8,
      systemNanos: 5e8,
      periods: 5,
      throttledPeriods: 3,
      throttledNanos: 200,
      burstPeriods: 1,
      burstNanos: 7,
      shares: 102,
      period: 100_000,
    });
  });

  test("memory: the kernel's unlimited is 0", () => {
    const { memory, oomKills } = reader.read("/c") ?? {};
    const files = { cache: 1, mappedFile: 2, activeFile: 3, inactiveFile: 4 };
    const limits = { limit: 64, swapLimit: 0, reservation: 32 };
    assert.deepEqual(memory, { ...files, kernel: 7, peak: 9, failures: 8, ...limits });
    assert.equal(oomKills, 2);
  });

  test("disks come from the files that have any", () => {
    const bytes = { Read: 10, Write: 20, Total: 30 };
    const operations = { Read: 1, Write: 2, Total: 3 };
    assert.deepEqual(reader.read("/c")?.disks, [{ device: "", major: 999, minor: 1, bytes, operations }]);
  });

  test("processes, their descriptors and sockets; an unlimited number of threads is 0", () => {
    const { processes } = reader.read("/c") ?? {};
    assert.equal(processes?.processes, 1);
    assert.ok((processes?.descriptors ?? 0) > 3, JSON.stringify(processes));
    assert.deepEqual([processes?.threads, processes?.mostThreads], [3, 0]);
    assert.ok((processes?.openFiles ?? 0) !== 0);
  });

  test("a cgroup that is gone has no details", () => {
    assert.equal(reader.read("/gone"), undefined);
  });
});

describe("cgroup version 2", () => {
  write("v2/c", {
    "cpu.stat": "usage_usec 9\nuser_usec 4\nsystem_usec 5\nnr_periods 6\nnr_throttled 7\nthrottled_usec 8\n",
    "cpu.weight": "100\n",
    "cpu.max": "50000 100000\n",
    "memory.stat": "anon 1\nfile 2\nfile_mapped 3\nactive_file 4\ninactive_file 5\n",
    "memory.peak": "99\n",
    "memory.max": "max\n",
    "memory.min": "11\n",
    "memory.swap.max": "0\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 3\noom_kill 1\n",
    "io.stat": "999:2 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0 cost.usage=5 cost.wait=6\n",
    "cgroup.procs": "\n",
  });
  const reader = new CgroupDetailsReader([{ version: 2, mountpoint: join(root, "v2"), controllers: [] }]);

  test("the same facts in the units of the kernel's files", () => {
    const { cpu, memory, disks, oomKills } = reader.read("/c") ?? {};
    assert.deepEqual(
      [cpu?.userNanos, cpu?.systemNanos, cpu?.throttledNanos, cpu?.shares, cpu?.period, cpu?.quota],
      [4000, 5000, 8000, 2597, 100_000, 50_000],
    );
    assert.deepEqual([memory?.cache, memory?.peak, memory?.limit, memory?.reservation, oomKills], [2, 99, 0, 11, 1]);
    const counts = { bytes: { Read: 1, Write: 2 }, operations: { Read: 3, Write: 4 } };
    const cost = { usage: 5, wait: 6, indebt: 0, indelay: 0 };
    assert.deepEqual(disks, [{ device: "", major: 999, minor: 2, ...counts, cost }]);
  });
});

test("the soft limit of open files", () => {
  const line = (soft: string): string =>
    `Limit Soft Hard Units\nMax open files            ${soft}      524288     files\n`;
  assert.deepEqual([softLimit(line("1024")), softLimit(line("unlimited")), softLimit("")], [1024, -1, undefined]);
});

test("files of disks that the kernel does not have are looked for once", () => {
  const files: Record<string, string> = { "/b/blkio.throttle.io_service_bytes_recursive": "8:0 Read 4\n" };
  const asked: string[] = [];
  const reader = new DiskReaderV1((path) => {
    asked.push(path);
    return files[path];
  });
  assert.deepEqual(reader.read("/gone"), []);
  assert.equal(asked.length, 4, "a cgroup without any of them tells nothing about the kernel");
  asked.length = 0;
  for (const round of [1, 2]) assert.equal(reader.read("/b")[0]?.bytes["Read"], 4, `${round}`);
  assert.equal(asked.filter((path) => path.includes("bfq")).length, 1);
  assert.equal(asked.filter((path) => path.endsWith("/blkio.io_service_bytes_recursive")).length, 1);
});
