import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readIfExists, writeAtomic } from "./atomic-file.ts";

function directoryFor(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), "atomic-"));
  t.after(() => rmSync(directory, { recursive: true }));
  return directory;
}

test("replaces the content and sets the mode whatever the umask", async (t) => {
  const path = join(directoryFor(t), "file");
  const umask = process.umask(0o077);
  t.after(() => process.umask(umask));
  await writeAtomic(path, "one");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const inode = statSync(path).ino;
  await writeAtomic(path, Buffer.from("two"), { mode: 0o644, sync: false });
  assert.equal(readFileSync(path, "utf8"), "two");
  assert.equal(statSync(path).mode & 0o777, 0o644);
  assert.notEqual(statSync(path).ino, inode, "a reader of the old file keeps it whole");
  assert.deepEqual(readdirSync(join(path, "..")), ["file"]);
});

test("a failed rename leaves the old state and no temporary file", async (t) => {
  const directory = directoryFor(t);
  const path = join(directory, "taken");
  mkdirSync(path);
  await assert.rejects(writeAtomic(path, "x"), { code: "EISDIR" });
  assert.deepEqual(readdirSync(directory), ["taken"]);
});

test("a failed write leaves the old file and no temporary file", async (t) => {
  const directory = directoryFor(t);
  const path = join(directory, "file");
  writeFileSync(path, "old");
  // Not what the type asks for: it makes the write itself fail, after the temporary file was made.
  await assert.rejects(writeAtomic(path, {} as unknown as Uint8Array));
  assert.equal(readFileSync(path, "utf8"), "old");
  assert.deepEqual(readdirSync(directory), ["file"]);
});

test("writers side by side do not disturb each other", async (t) => {
  const directory = directoryFor(t);
  const path = join(directory, "file");
  const texts = Array.from({ length: 20 }, (_, i) => String(i).repeat(10_000));
  await Promise.all(texts.map((text) => writeAtomic(path, text, { sync: false })));
  assert.ok(texts.includes(readFileSync(path, "utf8")));
  assert.deepEqual(readdirSync(directory), ["file"]);
});

test("a missing file reads as undefined, any other failure is thrown", async (t) => {
  const directory = directoryFor(t);
  assert.equal(await readIfExists(join(directory, "no")), undefined);
  await assert.rejects(readIfExists(directory), { code: "EISDIR" });
  writeFileSync(join(directory, "yes"), "text");
  chmodSync(join(directory, "yes"), 0o600);
  assert.equal(await readIfExists(join(directory, "yes")), "text");
});
