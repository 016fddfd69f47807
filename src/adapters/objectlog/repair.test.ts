import assert from "node:assert/strict";
import { test } from "node:test";
import { type DiskFaults, PowerCutDisk } from "../../../test/support/power-cut-disk.ts";
import { silent } from "../../lib/log.ts";
import { type LogWrite, openObjectLog } from "./index.ts";
import { encodeBatch, encodeHeader, recordLength } from "./record.ts";

const PATH = "/state/objects.log";

/** Counts the files that replaced another, and refuses them while it is told to. */
class CountingDisk extends PowerCutDisk {
  renames = 0;
  refuses = false;
  /** Files that are there cannot be removed either. */
  keeps = false;

  constructor(faults: DiskFaults = {}) {
    super(faults, () => 0.9);
  }

  override async rename(from: string, to: string): Promise<void> {
    this.renames++;
    if (this.refuses) throw Object.assign(new Error("EIO"), { code: "EIO" });
    await super.rename(from, to);
  }

  override async remove(path: string): Promise<void> {
    if (this.keeps && this.contentOf(path).length > 0) throw Object.assign(new Error("EIO"), { code: "EIO" });
    await super.remove(path);
  }
}

/** A log whose owner keeps what was acknowledged, as the store does. */
async function openOn(files: PowerCutDisk, slackBytes?: number) {
  const state = new Map<string, LogWrite>();
  const warnings: string[] = [];
  const log = { ...silent, warn: (message: string) => void warnings.push(message) };
  let revision = 0;
  const content = () => ({ revision, objects: state.values() });
  const options = { directory: "/state", ...(slackBytes !== undefined && { slackBytes }) };
  const opened = await openObjectLog({ files, log, content }, options);
  for (const object of opened.objects) state.set(object.key, object);
  revision = opened.revision;
  const append = async (key: string, value: string | undefined): Promise<void> => {
    const write = { key, revision: revision + 1, value };
    await opened.log.append([write]);
    revision = write.revision;
    if (value === undefined) state.delete(key);
    else state.set(key, write);
  };
  return { append, warnings, keys: () => [...state.keys()].sort(), revision: () => revision };
}

// 0: key, 1: remove .new, 2: open, 3: header, 4: sync, 5: directory; then a write and a sync for each append.
const SECOND_WRITE = 8;

test("nothing of a write that failed is left behind the next one", async () => {
  const disk = new CountingDisk({ failing: new Map([[SECOND_WRITE, "EIO"]]) });
  const log = await openOn(disk);
  await log.append("a", "1");
  await assert.rejects(log.append("b", "x".repeat(1000)), { code: "Failed" });
  await log.append("c", "3");
  const next = await openOn(disk.afterPowerCut());
  assert.deepEqual([next.keys(), next.warnings], [["a", "c"], []]);
});

test("what a crash left half written is cut off once, with a warning", async () => {
  const disk = new CountingDisk();
  const log = await openOn(disk);
  await log.append("a", "1");
  const { length } = disk.contentOf(PATH);
  const file = await disk.open(PATH);
  await file.write(Buffer.alloc(100, 7), length);
  const next = await openOn(disk);
  assert.equal(next.warnings.length, 1);
  assert.equal(disk.contentOf(PATH).length, length);
  assert.deepEqual((await openOn(disk)).warnings, []);
});

test("the newest revision survives a rewrite that no write follows", async () => {
  // 6 to 9: two appends; 10: remove .new, 11: open, 12: header, 13: sync, 14: rename, 15: directory, 16: the write.
  const disk = new CountingDisk({ failing: new Map([[16, "EIO"]]) });
  // Enough for both, and not for a third.
  const log = await openOn(disk, 210);
  await log.append("a", "x".repeat(200));
  await log.append("a", undefined);
  await assert.rejects(log.append("b", "1"), { code: "Failed" });
  assert.equal(disk.renames, 1);
  const next = await openOn(disk.afterPowerCut());
  assert.deepEqual([next.keys(), next.revision()], [[], 2]);
});

test("a file that grows by new objects is rewritten now and then, not with each write", async () => {
  const disk = new CountingDisk();
  const log = await openOn(disk, 1000);
  for (let index = 0; index < 200; index++) await log.append(`k-${index}`, "x".repeat(100));
  assert.ok(disk.renames >= 2 && disk.renames < 10, String(disk.renames));
});

test("a rewrite that fails leaves no file, is not tried with each write, and works once it can", async () => {
  const disk = new CountingDisk();
  const log = await openOn(disk, 1000);
  disk.refuses = true;
  for (let index = 0; index < 100; index++) await log.append("a", "x".repeat(100));
  assert.ok(disk.renames >= 2 && disk.renames < 10, String(disk.renames));
  assert.equal(log.warnings.length, disk.renames);
  assert.equal(disk.contentOf(`${PATH}.new`).length, 0);
  disk.refuses = false;
  for (let index = 0; index < 400; index++) await log.append("a", "x".repeat(100));
  assert.ok(disk.contentOf(PATH).length < 3000, String(disk.contentOf(PATH).length));
  const next = await openOn(disk.afterPowerCut());
  assert.deepEqual([next.keys(), next.revision()], [["a"], 500]);
});

test("nothing of a rewrite that could not be removed is left behind the next one", async () => {
  const disk = new CountingDisk();
  const log = await openOn(disk, 1000);
  await log.append("a", "x".repeat(2000));
  [disk.refuses, disk.keeps] = [true, true];
  await log.append("b", "1");
  assert.ok(disk.contentOf(`${PATH}.new`).length > 2000);
  await log.append("a", "1");
  [disk.refuses, disk.keeps] = [false, false];
  for (const { renames } = disk; disk.renames === renames; ) await log.append("b", "x".repeat(50));
  assert.ok(disk.contentOf(PATH).length < 2000, String(disk.contentOf(PATH).length));
  const next = await openOn(disk.afterPowerCut());
  assert.deepEqual([next.keys(), next.warnings], [["a", "b"], []]);
});

test("a rewrite has records of about a megabyte: one longer than a gigabyte would not be read", async () => {
  const disk = new CountingDisk();
  const log = await openOn(disk, 1000);
  for (let index = 0; index < 5; index++) await log.append(`k-${index}`, "x".repeat(600_000));
  await log.append("k-0", "x".repeat(600_000));
  for (let index = 0; disk.renames < 3; index++) await log.append("k-0", "x".repeat(600_000));
  const lengths: number[] = [];
  for (let rest = disk.contentOf(PATH); rest.length > 0; rest = rest.subarray(lengths.at(-1))) {
    lengths.push(recordLength(rest) ?? assert.fail("not a record"));
  }
  assert.ok(
    lengths.every((length) => length < 1_300_000),
    lengths.join(" "),
  );
  assert.deepEqual((await openOn(disk)).keys().length, 5);
});

test("a file of good records that does not begin with a header is refused, and left alone", async () => {
  const disk = new CountingDisk();
  const file = await disk.open(PATH);
  const sealer = { seal: () => assert.fail("no secret"), open: () => assert.fail("no secret") };
  const record = encodeBatch([{ key: "a", revision: 1, value: "1" }], sealer);
  await file.write(record, 0);
  await assert.rejects(openOn(disk), { code: "Corrupt", message: /does not begin like a file of objects/ });
  assert.deepEqual(disk.contentOf(PATH), record);
});

for (const [errno, code] of [
  ["ENOSPC", "NoSpace"],
  ["EDQUOT", "NoSpace"],
  ["EIO", "Failed"],
] as const) {
  test(`${errno} is ${code}`, async () => {
    const log = await openOn(new CountingDisk({ failing: new Map([[6, errno]]) }));
    await assert.rejects(log.append("a", "1"), { code });
  });
}

test("a file of a newer version is refused, and left alone", async () => {
  const disk = new CountingDisk();
  const file = await disk.open(PATH);
  const header = encodeHeader({ format: 2, revision: 5 });
  await file.write(header, 0);
  await assert.rejects(openOn(disk), { code: "Corrupt", message: /has format 2.*use the newer version/ });
  assert.deepEqual(disk.contentOf(PATH), header);
});

test("a key of another length is refused, and not replaced", async () => {
  const disk = new CountingDisk();
  await disk.writeSmall("/state/secrets.key", Buffer.alloc(31, 1));
  await assert.rejects(openOn(disk), { code: "NoKey", message: /has 31 bytes, and a key has 32/ });
  assert.equal(disk.contentOf("/state/secrets.key").length, 31);
});
