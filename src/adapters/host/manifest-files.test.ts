import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { manifestFiles } from "./manifest-files.ts";

const { signal } = new AbortController();
let directory = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "manifest-files-"));
});
after(() => rm(directory, { recursive: true }));

test("a missing path is undefined, also below a file", async () => {
  await writeFile(join(directory, "plain"), "x");
  assert.equal(await manifestFiles.stat(join(directory, "missing"), { signal }), undefined);
  assert.equal(await manifestFiles.stat(join(directory, "plain", "below"), { signal }), undefined);
});

test("links are followed, and the stamp changes with the content", async () => {
  const path = join(directory, "a.yaml");
  await writeFile(path, "one");
  await symlink(path, join(directory, "link.yaml"));
  const first = await manifestFiles.stat(join(directory, "link.yaml"), { signal });
  assert.equal(first?.kind, "file");
  assert.equal(first?.size, 3);
  await writeFile(path, "four");
  assert.notEqual((await manifestFiles.stat(path, { signal }))?.stamp, first?.stamp);
});

test("a directory is listed", async () => {
  const path = join(directory, "many");
  await mkdir(path);
  await writeFile(join(path, "b"), "");
  await writeFile(join(path, ".a"), "");
  assert.equal((await manifestFiles.stat(path, { signal }))?.kind, "directory");
  assert.deepEqual([...(await manifestFiles.list(path, { signal }))].sort(), [".a", "b"]);
});

test("a large file is read in pieces, and refused over the limit", async () => {
  const path = join(directory, "large");
  await writeFile(path, "é".repeat(100_000));
  assert.equal(await manifestFiles.read(path, { signal, maxBytes: 200_000 }), "é".repeat(100_000));
  await assert.rejects(manifestFiles.read(path, { signal, maxBytes: 199_999 }), /more than 199999 bytes/);
});

test("a pipe is recognised and never waited for", async () => {
  const path = join(directory, "pipe");
  execFileSync("mkfifo", [path]);
  assert.equal((await manifestFiles.stat(path, { signal }))?.kind, "other");
  await assert.rejects(manifestFiles.read(path, { signal, maxBytes: 10 }), /not a regular file/);
});
