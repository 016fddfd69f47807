import assert from "node:assert/strict";
import { readFileSync, statfsSync, statSync } from "node:fs";
import { test } from "node:test";
import { fieldIn } from "./kernel-file.ts";
import { isAnonymousDevice, mountedDevice } from "./mount-table.ts";
import { parseInterfaces, readBootTime, readInterfaces, readSwap, readTasks, SpaceReader } from "./node-usage.ts";
import { parsePressureStall } from "./pressure-stall.ts";

const DEV = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
  eth0: 1000      10    2    4    0     0          0         0     2000      20    3    5    0     0       0          0
veth12:    5       1    0    0    0     0          0         0        5       1    0    0    0     0       0          0
`;

test("interfaces: counters of both directions, without the loopback and the host's ends of containers", () => {
  const received = { rxBytes: 1000, rxPackets: 10, rxErrors: 2, rxDropped: 4 };
  const sent = { txBytes: 2000, txPackets: 20, txErrors: 3, txDropped: 5 };
  assert.deepEqual(parseInterfaces(DEV), [{ name: "eth0", ...received, ...sent }]);
});

test("a name is found only as a whole", () => {
  const text = "total_rss 5\nrss_huge 6\nrss 7\n";
  assert.deepEqual(
    ["total_rss", "rss", "rss_huge", "huge"].map((name) => fieldIn(text, name)),
    [5, 7, 6, 0],
  );
});

test("a kernel whose CPU stalls have no line for all tasks", () => {
  const none = { avg10: 0, avg60: 0, avg300: 0, total: 0 };
  assert.deepEqual(parsePressureStall("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"), { some: none, full: none });
  assert.equal(parsePressureStall(""), undefined);
});

test("subvolumes of one btrfs are one filesystem, other filesystems are not", () => {
  const mounts = [
    "22 1 0:29 /@ / rw,relatime shared:1 - btrfs /dev/sda2 rw,space_cache",
    "40 22 0:29 /@images /var/lib/containerd rw,relatime shared:5 - btrfs /dev/sda2 rw,space_cache",
    "41 22 8:17 / /var/lib/my\\040disk rw - ext4 /dev/sdb1 rw",
    "42 22 259:4660 / /nvme rw - ext4 /dev/nvme0n1p9 rw",
  ].join("\n");
  const [root, images] = [mountedDevice(mounts, "/var/lib/kubelet"), mountedDevice(mounts, "/var/lib/containerd/x")];
  assert.deepEqual([root, images], [29, 29]);
  assert.equal(mountedDevice(mounts, "/var/lib/my disk"), 0x811);
  assert.equal(mountedDevice(mounts, "/nvme"), 0x1210334, "a minor number of more than 8 bits");
  assert.equal(mountedDevice("", "/"), undefined);
  assert.deepEqual([29, 0x811, 0x1210334, 0x100000 + 29].map(isAnonymousDevice), [true, false, false, true]);
});

test("the device of a mount is the one that stat tells, but for subvolumes", async () => {
  const { dev } = statSync("/proc");
  assert.equal(mountedDevice(readFileSync("/proc/self/mountinfo", "utf8"), "/proc"), dev);
});

test("the node of the test itself", async () => {
  const tasks = readTasks();
  assert.ok(tasks !== undefined && tasks.running > 0 && tasks.running < tasks.most, JSON.stringify(tasks));
  const numberAt = (path: string): number => Number(readFileSync(path, "utf8"));
  const limits = ["pid_max", "threads-max"].map((name) => numberAt(`/proc/sys/kernel/${name}`));
  assert.equal(tasks.most, Math.min(...limits));
  const { total, free } = readSwap();
  assert.ok(free <= total);
  assert.equal(total, Number(/^SwapTotal: +(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) * 1024);
  const uptimeMs = Number.parseFloat(readFileSync("/proc/uptime", "utf8")) * 1000;
  assert.ok(Math.abs(Date.now() - uptimeMs - readBootTime()) < 60_000);
  assert.equal(readInterfaces(2 ** 30), undefined);
  const reader = new SpaceReader();
  const space = await reader.read("/");
  assert.ok(space !== undefined && space.availableBytes <= space.capacityBytes, JSON.stringify(space));
  assert.equal(await reader.read("/no/such/path"), undefined);
  const { blocks, bsize, bfree, bavail, files } = statfsSync("/");
  const isNear = (bytes: number, wanted: number): boolean => Math.abs(bytes - wanted) < 2 ** 30;
  assert.deepEqual([space.capacityBytes, space.inodes], [blocks * bsize, files]);
  assert.ok(isNear(space.availableBytes, bavail * bsize) && isNear(space.usedBytes, (blocks - bfree) * bsize));
  const [first, second] = await Promise.all([reader.read("/"), reader.read("/")]);
  assert.equal(first, second, "a call that has not returned is shared");
});
