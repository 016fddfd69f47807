import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { readKernelLimits } from "./facts.ts";
import { hierarchiesOf } from "./hierarchy.ts";
import { cpusCall, setCall, startCall } from "./systemd-slices.ts";
import { CgroupTree } from "./tree.ts";

/** Plain directories in place of the kernel's: what is made and written can be looked at. */
let dir = "";
// In each group by itself: hooks outside of one are for the tests of all files that run in one process.
function withDirectory(): void {
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "cgroup-"));
  });
  afterEach(() => rmSync(dir, { recursive: true }));
}

function v1(...controllers: string[]) {
  return controllers.map((name) => {
    mkdirSync(join(dir, name), { recursive: true });
    return { version: 1 as const, mountpoint: join(dir, name), controllers: name.split(",") };
  });
}
const text = (...path: string[]): string => readFileSync(join(dir, ...path), "utf8");
const VALUES = {
  cpuShares: 512,
  cpuQuota: { quota: 50_000, period: 100_000 },
  memoryLimit: 1024,
  pids: 0,
  hugepages: { "2MB": 4096 },
};

describe("version 1", () => {
  withDirectory();
  test("a cgroup is made in every hierarchy but devices, and a cpuset gets what the one above has", async () => {
    const mounts = v1("cpu,cpuacct", "cpuset", "memory", "pids", "devices", "name=systemd");
    writeFileSync(join(dir, "cpuset/cpuset.cpus"), "0-3\n");
    writeFileSync(join(dir, "cpuset/cpuset.mems"), "0\n");
    for (const level of ["a", "a/b"]) {
      mkdirSync(join(dir, "cpuset", level));
      for (const file of ["cpuset.cpus", "cpuset.mems"]) writeFileSync(join(dir, "cpuset", level, file), "\n");
    }
    await new CgroupTree(mounts).ensure("/a/b");
    for (const name of ["cpu,cpuacct", "memory", "pids", "name=systemd"]) mkdirSync(join(dir, name, "a/b/inside"));
    assert.throws(() => mkdirSync(join(dir, "devices/a/b")), "nothing was made among the devices");
    assert.deepEqual([text("cpuset/a/b/cpuset.cpus"), text("cpuset/a/b/cpuset.mems")], ["0-3", "0"]);
  });

  test("values go to the files of their controllers; what has no controller is told", async () => {
    const tree = new CgroupTree(v1("cpu", "memory"));
    await tree.ensure("/a");
    const problems = await tree.set("/a", VALUES);
    assert.equal(text("cpu/a/cpu.shares"), "512");
    assert.equal(text("cpu/a/cpu.cfs_quota_us"), "50000");
    assert.equal(text("cpu/a/cpu.cfs_period_us"), "100000");
    assert.equal(text("memory/a/memory.limit_in_bytes"), "1024");
    assert.deepEqual(problems, [
      "pids.max: there is no pids controller",
      "hugetlb.2MB.limit_in_bytes: there is no hugetlb controller",
    ]);
    assert.deepEqual(tree.read("/a"), {
      cpuShares: 512,
      cpuQuota: { quota: 50_000, period: 100_000 },
      memoryLimit: 1024,
    });
    assert.equal(tree.read("/b"), undefined);
  });

  test("no limit is not missed where there is no controller", async () => {
    const tree = new CgroupTree(v1("cpu"));
    await tree.ensure("/a");
    const values = { memoryLimit: -1, pids: -1, cpuQuota: { quota: -1, period: 100_000 }, hugepages: { "2MB": 0 } };
    assert.deepEqual(await tree.set("/a", values), []);
  });

  test("wins over a unified tree beside it", () => {
    const unified = { version: 2 as const, mountpoint: join(dir, "unified"), controllers: [] };
    assert.equal(hierarchiesOf([...v1("cpu"), unified])?.version, 1);
    assert.equal(hierarchiesOf([...v1("name=systemd"), unified])?.version, 2);
    assert.equal(hierarchiesOf([]), undefined);
  });
});

describe("version 2", () => {
  withDirectory();
  const mounts = () => [{ version: 2 as const, mountpoint: dir, controllers: [] }];

  test("each level hands the controllers on, the last one does not", async () => {
    writeFileSync(join(dir, "cgroup.controllers"), "cpu memory pids\n");
    writeFileSync(join(dir, "cgroup.subtree_control"), "memory\n");
    await new CgroupTree(mounts()).ensure("/a/b");
    assert.equal(text("cgroup.subtree_control"), "+cpu +pids");
    assert.equal(text("a/cgroup.subtree_control"), "+cpu +memory +pids");
    assert.throws(() => text("a/b/cgroup.subtree_control"));
  });

  test("values are written in its own words and read back", async () => {
    const tree = new CgroupTree(mounts());
    mkdirSync(join(dir, "a"));
    writeFileSync(join(dir, "a/hugetlb.2MB.rsvd.max"), "max");
    assert.deepEqual(await tree.set("/a", VALUES), []);
    const names = ["cpu.weight", "cpu.max", "memory.max", "pids.max", "hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"];
    const found = names.map((name) => text("a", name));
    assert.deepEqual(found, ["20", "50000 100000", "1024", "1", "4096", "4096"]);
    assert.deepEqual(tree.read("/a"), {
      cpuShares: 500,
      cpuQuota: { quota: 50_000, period: 100_000 },
      memoryLimit: 1024,
    });
    for (const file of names) writeFileSync(join(dir, "a", file), "1");
    await tree.set("/a", { memoryLimit: -1, cpuQuota: { quota: -1, period: 100_000 }, pids: -1 });
    assert.deepEqual([text("a/memory.max"), text("a/cpu.max"), text("a/pids.max")], ["max", "max 100000", "max"]);
  });

  test("memory is protected; what is in use without the page cache is read", async () => {
    const tree = new CgroupTree(mounts());
    mkdirSync(join(dir, "a/podx"), { recursive: true });
    assert.deepEqual(await tree.set("/a", { memoryMin: 4096, memoryLow: 8192 }), []);
    assert.deepEqual([text("a/memory.min"), text("a/memory.low")], ["4096", "8192"]);
    assert.equal(tree.unreclaimable("/a"), undefined);
    writeFileSync(join(dir, "a/memory.current"), "1000\n");
    writeFileSync(join(dir, "a/memory.stat"), "anon 1\ninactive_file 200\nactive_file 50\n");
    assert.equal(tree.unreclaimable("/a"), 750);
    assert.deepEqual(tree.childrenOf("/a"), ["podx"]);
    assert.deepEqual(tree.childrenOf("/nowhere"), []);
  });
});

describe("systemd", () => {
  withDirectory();
  test("each slice on the way is started, then the limits are set as properties and as files", async () => {
    const calls: string[][] = [];
    const bus = async (args: readonly string[]): Promise<void> => {
      calls.push([...args].slice(args.indexOf("org.freedesktop.systemd1.Manager") + 1));
    };
    const tree = new CgroupTree([{ version: 2, mountpoint: dir, controllers: [] }], { systemd: bus });
    const path = "/kubepods.slice/kubepods-burstable.slice";
    await tree.ensure(path);
    assert.deepEqual(
      calls.map(([method, , , unit]) => [method, unit]),
      [
        ["StartTransientUnit", "kubepods.slice"],
        ["StartTransientUnit", "kubepods-burstable.slice"],
      ],
    );
    await tree.set(path, { cpuShares: 512 });
    assert.equal(calls.at(-1)?.[0], "SetUnitProperties");
    assert.equal(text(path, "cpu.weight"), "20");
    await tree.forget(path);
    assert.deepEqual(
      calls.slice(-2).map(([method]) => method),
      ["StopUnit", "ResetFailedUnit"],
    );
  });

  test("systemd is told once of a slice, and again when it is gone", async () => {
    const started: (string | undefined)[] = [];
    const bus = async (args: readonly string[]): Promise<void> => {
      if (args.includes("StartTransientUnit")) started.push(args[args.indexOf("--") + 1]);
    };
    const tree = new CgroupTree([{ version: 2, mountpoint: dir, controllers: [] }], { systemd: bus });
    const pod = "/kubepods.slice/kubepods-pod1.slice";
    await tree.ensure(pod);
    await tree.ensure(pod);
    assert.deepEqual(started.splice(0), ["kubepods.slice", "kubepods-pod1.slice"]);
    await tree.forget(pod);
    await tree.ensure(pod);
    assert.deepEqual(started.splice(0), ["kubepods-pod1.slice"], "it was forgotten");
    rmSync(join(dir, "kubepods.slice"), { recursive: true });
    await tree.ensure(pod);
    assert.deepEqual(started, ["kubepods.slice", "kubepods-pod1.slice"], "the kernel has none of them");
  });

  test("a slice that exists is success, another failure is not", async () => {
    const fails = (words: string) =>
      new CgroupTree([{ version: 2, mountpoint: dir, controllers: [] }], {
        systemd: () => Promise.reject(new Error(words)),
      }).ensure("/kubepods.slice");
    await fails("Call failed: Unit kubepods.slice already exists.");
    await fails("Call failed: Unit kubepods.slice was already loaded or has a fragment file.");
    await assert.rejects(fails("Failed to connect to bus"), /bus/);
  });

  test("the words for busctl", () => {
    const start = startCall("/kubepods.slice/kubepods-besteffort.slice", 1);
    assert.deepEqual(start.slice(start.indexOf("--") + 1, start.indexOf("--") + 11), [
      ...["kubepods-besteffort.slice", "replace", "7"],
      ...["Description", "s", "cgroup of pods kubepods-besteffort.slice", "Wants", "as", "1", "kubepods.slice"],
    ]);
    assert.ok(start.includes("BlockIOAccounting"));
    const set = setCall(
      "/kubepods.slice",
      { cpuQuota: { quota: 33_333, period: 100_000 }, memoryLimit: -1, pids: 5 },
      2,
    );
    assert.deepEqual(set?.slice(set.indexOf("--") + 1), [
      ...["kubepods.slice", "true", "4", "CPUQuotaPerSecUSec", "t", "340000", "CPUQuotaPeriodUSec", "t", "100000"],
      ...["MemoryMax", "t", "18446744073709551615", "TasksMax", "t", "5"],
    ]);
    const guarded = setCall("/kubepods.slice", { memoryMin: 1, memoryLow: 2 }, 2);
    assert.deepEqual(guarded?.slice(-6), ["MemoryMin", "t", "1", "MemoryLow", "t", "2"]);
    assert.equal(setCall("/kubepods.slice", { memoryMin: 1 }, 1), undefined, "only cgroup v2 has it");
    assert.equal(setCall("/kubepods.slice", {}, 2), undefined);
    const cpus = cpusCall("/kubepods.slice", "0-2,9");
    assert.deepEqual(cpus.slice(cpus.indexOf("--") + 1), [
      ...["kubepods.slice", "true", "1", "AllowedCPUs", "ay", "2", "7", "2"],
    ]);
  });

  test("CPUs are set apart from the other limits: an old systemd does not know them", async () => {
    const calls: string[] = [];
    const bus = async (args: readonly string[]): Promise<void> => {
      if (args.includes("AllowedCPUs")) throw new Error("Cannot set property AllowedCPUs, or unknown property.");
      calls.push(args.join(" "));
    };
    const tree = new CgroupTree([{ version: 2, mountpoint: dir, controllers: [] }], { systemd: bus });
    await tree.ensure("/kubepods.slice");
    writeFileSync(join(dir, "kubepods.slice", "cpuset.cpus"), "");
    assert.deepEqual(await tree.set("/kubepods.slice", { pids: 5, cpus: "0-1" }), []);
    assert.match(calls.at(-1) ?? "", /TasksMax t 5$/);
    assert.equal(text("/kubepods.slice", "cpuset.cpus"), "0-1");
  });
});

describe("the kernel", () => {
  withDirectory();
  test("what the kernel can limit is read from its files", () => {
    mkdirSync(join(dir, "sys/kernel/mm/hugepages/hugepages-1048576kB"), { recursive: true });
    mkdirSync(join(dir, "sys/kernel/mm/hugepages/hugepages-2048kB"), { recursive: true });
    mkdirSync(join(dir, "proc/sys/kernel"), { recursive: true });
    writeFileSync(join(dir, "proc/sys/kernel/pid_max"), "4194304\n");
    writeFileSync(join(dir, "proc/sys/kernel/threads-max"), "32768\n");
    const memory = v1("memory");
    writeFileSync(join(dir, "memory/memory.memsw.limit_in_bytes"), "0");
    assert.deepEqual(readKernelLimits(memory, dir), {
      cgroupVersion: 1,
      controllers: ["memory"],
      hugepageKib: [2048, 1048576],
      pageSize: 4096,
      pidMax: 32768,
      canLimitSwap: true,
    });
    assert.deepEqual(readKernelLimits([], join(dir, "nowhere")), {
      cgroupVersion: undefined,
      controllers: [],
      hugepageKib: [],
      pageSize: 4096,
      pidMax: undefined,
      canLimitSwap: false,
    });
  });

  test("the controllers of a unified hierarchy are those that its top has", () => {
    const mounts = [{ version: 2, mountpoint: dir, controllers: [] }] as const;
    assert.deepEqual(readKernelLimits(mounts, dir).controllers, []);
    writeFileSync(join(dir, "cgroup.controllers"), "cpuset cpu memory pids\n");
    assert.deepEqual(readKernelLimits(mounts, dir).controllers, ["cpuset", "cpu", "memory", "pids"]);
  });

  const unified: [string, readonly string[], boolean][] = [
    ["counts swap", ["a.slice/memory.max", "a.slice/memory.swap.max"], true],
    ["does not count swap", ["a.slice/memory.max", "b.slice/pids.max"], false],
    ["has nothing below the top to tell by", ["a.slice/pids.max"], true],
  ];
  for (const [title, files, canLimitSwap] of unified) {
    test(`a unified hierarchy that ${title}`, () => {
      for (const file of files) {
        mkdirSync(join(dir, file, ".."), { recursive: true });
        writeFileSync(join(dir, file), "max\n");
      }
      const mounts = [{ version: 2 as const, mountpoint: dir, controllers: [] }];
      assert.equal(readKernelLimits(mounts, dir).canLimitSwap, canLimitSwap);
    });
  }
});
