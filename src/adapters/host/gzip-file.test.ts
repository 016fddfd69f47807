import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { gzipFile } from "./gzip-file.ts";

const dir = mkdtempSync(join(tmpdir(), "gzip-file-"));
after(() => rmSync(dir, { recursive: true }));
const { signal } = new AbortController();

async function compressed(name: string, content: Buffer): Promise<Buffer> {
  writeFileSync(join(dir, name), content);
  const [source, target] = [await open(join(dir, name)), await open(join(dir, `${name}.gz`), "wx")];
  try {
    await gzipFile(source, target, { signal });
  } finally {
    await source.close();
    await target.close();
  }
  return readFileSync(join(dir, `${name}.gz`));
}

test("what was compressed is the content of the file, of any size, one after the other and at the same time", async () => {
  // Random bytes do not shrink: the output of one read is larger than a piece of output.
  const contents = [0, 1, 1024 * 1024, 3 * 1024 * 1024 + 7].map((bytes) => randomBytes(bytes));
  for (const [index, content] of contents.entries()) {
    assert.ok(gunzipSync(await compressed(`single-${index}`, content)).equals(content), `${content.length} bytes`);
  }
  const all = await Promise.all(contents.map((content, index) => compressed(`beside-${index}`, content)));
  for (const [index, content] of contents.entries()) assert.ok(gunzipSync(all[index] ?? "").equals(content));
});

test("all reads of a file use one buffer: V8 counts each new one and collects the whole heap for them", async () => {
  const buffers = new Set<ArrayBufferLike>();
  let reads = 0;
  const source = {
    read: (buffer: Buffer) => {
      buffers.add(buffer.buffer);
      return Promise.resolve({ bytesRead: reads++ < 8 ? buffer.fill("line\n").length : 0, buffer });
    },
  };
  const target = await open(join(dir, "reads.gz"), "wx");
  // reason: of a source only `read` is used
  await gzipFile(source as unknown as FileHandle, target, { signal });
  await target.close();
  assert.deepEqual([reads, buffers.size], [9, 1]);
  assert.equal(gunzipSync(readFileSync(join(dir, "reads.gz"))).length, 8 * 1024 * 1024);
});

test("a read that fails and an abort reject", async () => {
  const target = await open(join(dir, "failed.gz"), "wx");
  const failing = { read: () => Promise.reject(new Error("input/output error")) };
  // reason: of a source only `read` is used
  await assert.rejects(gzipFile(failing as unknown as FileHandle, target, { signal }), /input\/output error/);
  const stop = new AbortController();
  const endless = {
    read: (buffer: Buffer) => {
      stop.abort(new Error("stopped"));
      return Promise.resolve({ bytesRead: buffer.length, buffer });
    },
  };
  // reason: of a source only `read` is used
  await assert.rejects(gzipFile(endless as unknown as FileHandle, target, stop), /stopped/);
  await target.close();
});
