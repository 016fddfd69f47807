import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldIn } from "./kernel-file.ts";
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

test("the node of the test itself", async () => {
  const tasks = readTasks();
  assert.ok(tasks !== undefined && tasks.running > 0 && tasks.running < tasks.most, JSON.stringify(tasks));
  const { total, free } = readSwap();
  assert.ok(free <= total);
  assert.ok(readBootTime() > 0 && readBootTime() < Date.now());
  assert.equal(readInterfaces(2 ** 30), undefined);
  const reader = new SpaceReader();
  const space = await reader.read("/");
  assert.ok(space !== undefined && space.availableBytes <= space.capacityBytes, JSON.stringify(space));
  assert.equal(await reader.read("/no/such/path"), undefined);
});
