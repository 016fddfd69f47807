import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { CompressedLogFile } from "./compressed-log-file.ts";
import { hostLogFiles } from "./log-files.ts";

const dir = mkdtempSync(join(tmpdir(), "log-files-"));
after(() => rmSync(dir, { recursive: true }));

test("a FIFO or a directory in place of a log file is refused, and never waited for", async () => {
  const pipe = join(dir, "0.log");
  execFileSync("mkfifo", [pipe]);
  // More than the pool has threads: each one that waits for a writer would hold one.
  for (let round = 0; round < 8; round++) await assert.rejects(hostLogFiles.open(pipe), /not a regular file/);
  await assert.rejects(hostLogFiles.open(dir), /not a regular file/);
});

test("a log file is opened, and a missing one is undefined", async () => {
  const path = join(dir, "1.log");
  writeFileSync(path, "text");
  const file = await hostLogFiles.open(path);
  assert.equal(await file?.size(), 4);
  await file?.close();
  assert.equal(await hostLogFiles.open(join(dir, "2.log")), undefined);
});

test("a link in place of a log file is refused, wherever it leads", async () => {
  const [secret, path] = [join(dir, "token"), join(dir, "3.log")];
  writeFileSync(secret, "token of another pod");
  symlinkSync(secret, path);
  await assert.rejects(hostLogFiles.open(path), /3\.log: not a regular file/);
  assert.notEqual(await hostLogFiles.identity(path), await hostLogFiles.identity(secret));
});

test("a compressed log of gigabytes that claims to be small is not read into memory", async () => {
  const path = join(dir, "4.log.gz");
  writeFileSync(path, gzipSync("line\n"));
  // Sparse, and its last bytes, which tell the size of the text, are zero.
  truncateSync(path, 5 * 2 ** 30);
  const file = await hostLogFiles.open(path);
  assert.ok(file instanceof CompressedLogFile);
  await file.hold();
  const buffer = Buffer.alloc(16);
  assert.equal(buffer.toString("utf8", 0, await file.read(buffer, 0)), "line\n");
  await file.close();
});
