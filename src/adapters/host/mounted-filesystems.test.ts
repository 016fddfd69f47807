import assert from "node:assert/strict";
import { test } from "node:test";
import { readHardware } from "./hardware.ts";
import { parseMountTable } from "./mount-table.ts";
import { numbersOf, parseDiskStats, readMountedFilesystems, shownMounts } from "./mounted-filesystems.ts";

const mount = (target: string, type: string, source: string): string =>
  `36 35 98:0 / ${target} rw,noatime - ${type} ${source} rw`;

test("each filesystem of the node once, without those of containers, of volumes and of networks", () => {
  const table = [
    mount("/", "ext4", "/dev/a1"),
    mount("/again", "ext4", "/dev/a1"),
    mount("/run", "tmpfs", "tmpfs"),
    mount("/dev/shm", "tmpfs", "tmpfs"),
    mount("/srv", "nfs4", "server:/srv"),
    mount("/run/containerd/x/rootfs", "tmpfs", "tmpfs"),
    mount("/elsewhere/sandboxes/0a1b/shm", "tmpfs", "shm"),
    mount("/agent/root/pods/u/volumes/v", "tmpfs", "tmpfs"),
  ];
  assert.deepEqual(
    shownMounts(parseMountTable(table.join("\n")), "/agent/root").map(({ device }) => device),
    ["/dev/a1", "/run", "/dev/shm"],
  );
});

test("activity of a device by its numbers", () => {
  const disks = parseDiskStats(" 254       0 vda 1 2 3 4 5 6 7 8 9 10 11 0 0\n");
  const read = { reads: 1, readsMerged: 2, sectorsRead: 3, readMs: 4 };
  const written = { writes: 5, writesMerged: 6, sectorsWritten: 7, writeMs: 8 };
  assert.deepEqual([...disks], [["254:0", { ...read, ...written, inProgress: 9, ioMs: 10, weightedMs: 11 }]]);
  assert.equal(numbersOf(0xfe00), "254:0");
  assert.equal(numbersOf(0x10_0801), "8:257");
});

test("the machine of the test itself", async () => {
  const { physicalCores, sockets } = readHardware();
  assert.ok(physicalCores >= 1 && sockets >= 1 && sockets <= physicalCores);
  assert.deepEqual(await readMountedFilesystems(async () => undefined, "/none"), [], "all hang");
});
