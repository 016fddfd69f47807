import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pullRecordFiles } from "./pull-record-files.ts";

const base = mkdtempSync(join(tmpdir(), "pull-records-"));
after(() => rmSync(base, { recursive: true }));
const directory = join(base, "image_manager/pulled");

test("a record is for root alone, and so is its directory", async () => {
  assert.deepEqual(await pullRecordFiles.names(directory), []);
  assert.equal(await pullRecordFiles.read(join(directory, "sha256-1")), undefined);
  await pullRecordFiles.write(join(directory, "sha256-1"), "one");
  assert.equal(await pullRecordFiles.read(join(directory, "sha256-1")), "one");
  assert.deepEqual(
    [directory, join(directory, "sha256-1")].map((path) => statSync(path).mode & 0o777),
    [0o700, 0o600],
  );
  assert.deepEqual(await pullRecordFiles.names(directory), ["sha256-1"]);
});

test("temporary files of killed kubelets are removed, other files stay", async () => {
  const temporary = [".sha256-2.17.1.tmp", "sha256-2.tmp"].map((name) => join(directory, name));
  for (const path of temporary) writeFileSync(path, "{");
  writeFileSync(join(directory, "notes.tmp"), "");
  assert.deepEqual([...(await pullRecordFiles.names(directory))].sort(), ["notes.tmp", "sha256-1"]);
  assert.deepEqual(temporary.map(existsSync), [false, false]);
});

test("a record of many megabytes is not read", async () => {
  const path = join(directory, "sha256-3");
  writeFileSync(path, "");
  truncateSync(path, 5 * 1024 * 1024);
  await assert.rejects(pullRecordFiles.read(path), /more than 4194304/);
});

test("a pipe or a device in the place of a record is not read", async () => {
  const [pipe, device] = [join(directory, "sha256-5"), join(directory, "sha256-6")];
  execFileSync("mkfifo", [pipe]);
  symlinkSync("/dev/zero", device);
  await assert.rejects(pullRecordFiles.read(pipe), /not a regular file/);
  await assert.rejects(pullRecordFiles.read(device), /not a regular file/);
});

test("a record that is not there is removed without an error", async () => {
  await pullRecordFiles.remove(join(directory, "sha256-4"));
});
