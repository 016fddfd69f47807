import assert from "node:assert/strict";
import { test } from "node:test";
import { sumDiskTraffic } from "./disk-traffic.ts";

test("whole disks are summed: neither partitions nor devices made of disks count twice", () => {
  const row = (name: string, read: number, written: number): string =>
    `   8 0 ${name} 1 0 ${read} 0 1 0 ${written} 0 0 0 0`;
  const text = [
    row("sda", 10, 20),
    row("sda1", 10, 20),
    row("nvme0n1", 1, 2),
    row("nvme0n1p2", 1, 2),
    row("vdb", 100, 200),
    row("dm-0", 5, 5),
    row("loop0", 7, 7),
    "",
  ].join("\n");
  assert.deepEqual(sumDiskTraffic(text), { readBytes: 111 * 512, writtenBytes: 222 * 512 });
});
