import assert from "node:assert/strict";
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { deletedFiles } from "./deleted-files.ts";

const KIB_256 = 256 * 1024;

/** Opens a new file of 256 KiB, and answers with its path; it is closed after the test. */
function opened(t: TestContext, directory: string, name: string): string {
  const path = join(directory, name);
  writeFileSync(path, Buffer.alloc(KIB_256, 1));
  const fd = openSync(path, "r");
  t.after(() => closeSync(fd));
  return path;
}

test("files that are deleted and open count by their device, each once, and others do not", async (t) => {
  // Beside the source: a temporary directory may be in memory, which is no disk.
  const directory = mkdtempSync(join(import.meta.dirname, ".deleted-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const { dev } = statSync(directory);
  const measure = async (device: number): Promise<number[]> => {
    // Where the source is in a writable layer itself, it counts there.
    const { node, layers } = await deletedFiles([process.pid, process.pid], device);
    return [node.bytes + layers.bytes, node.inodes + layers.inodes];
  };
  const [bytes = 0, inodes = 0] = await measure(dev);
  opened(t, directory, "kept");
  opened(t, directory, "looks (deleted)");
  const gone = opened(t, directory, "gone");
  const again = openSync(gone, "r");
  t.after(() => closeSync(again));
  unlinkSync(gone);
  assert.deepEqual(await measure(dev), [bytes + KIB_256, inodes + 1]);
  assert.equal((await deletedFiles([process.pid], dev + 1)).node.bytes, 0, "another disk is not the node's");
});

/** A /proc with processes that have so many descriptors of a deleted file each; only the first has a table of mounts. */
function fakeProc(t: TestContext, processes: number, descriptors: number): { proc: string; device: number } {
  const directory = mkdtempSync(join(import.meta.dirname, ".deleted-"));
  t.after(() => rmSync(directory, { recursive: true }));
  for (let pid = 1; pid <= processes; pid++) {
    const own = join(directory, String(pid));
    for (const name of ["fd", "fdinfo", "ns"]) mkdirSync(join(own, name), { recursive: true });
    symlinkSync("mnt:[4026531840]", join(own, "ns/mnt"));
    if (pid === 1) writeFileSync(join(own, "mountinfo"), "36 35 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n");
    for (let at = 0; at < descriptors; at++) {
      const path = join(directory, `file-${pid}-${at}`);
      const fd = openSync(path, "w");
      t.after(() => closeSync(fd));
      unlinkSync(path);
      const name = join(directory, `${pid}-${at} (deleted)`);
      symlinkSync(`/proc/self/fd/${fd}`, name);
      symlinkSync(name, join(own, "fd", String(at)));
      writeFileSync(join(own, "fdinfo", String(at)), "pos:\t0\nmnt_id:\t36\n");
    }
  }
  return { proc: directory, device: statSync(directory).dev };
}

test("the table of mounts is read once for processes that share it: it may be long", async (t) => {
  const { proc, device } = fakeProc(t, 2, 1);
  assert.deepEqual((await deletedFiles([1, 2], device, { proc })).node, { bytes: 0, inodes: 2 });
});

test("many descriptors hold the event loop only a little at a time", async (t) => {
  const { proc, device } = fakeProc(t, 1, 20);
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const { node } = await deletedFiles([1], device, { proc, sliceMs: 0 });
  isDone = true;
  assert.equal(node.inodes, 20);
  assert.ok(turns >= 20, `others had ${turns} turns`);
});

test("files in memory do not count, nor do processes that are gone", async (t) => {
  const directory = mkdtempSync(join("/dev/shm", "deleted-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const { dev } = statSync(directory);
  unlinkSync(opened(t, directory, "gone"));
  assert.deepEqual((await deletedFiles([process.pid, 2 ** 22 + 1], dev)).node, { bytes: 0, inodes: 0 });
});
