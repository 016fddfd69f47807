import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { rotationFiles } from "./rotation-files.ts";

const dir = mkdtempSync(join(tmpdir(), "rotation-"));
after(() => rmSync(dir, { recursive: true }));
const { signal } = new AbortController();

test("a compressed log has the content, the mode and the time of the plain one, which is gone", async () => {
  const path = join(dir, "a.log");
  const text = "a line of a log\n".repeat(100_000);
  writeFileSync(path, text, { mode: 0o640 });
  utimesSync(path, 1_700_000_000, 1_700_000_000);
  await rotationFiles.compress(path, `${path}.gz`, { signal });
  assert.equal(gunzipSync(readFileSync(`${path}.gz`)).toString(), text);
  const { mode, mtimeMs } = statSync(`${path}.gz`);
  assert.deepEqual([mode & 0o777, mtimeMs], [0o640, 1_700_000_000_000]);
  assert.ok(!existsSync(path));
  assert.deepEqual(
    readdirSync(dir).filter((name) => name.endsWith(".tmp")),
    [],
  );
});

test("an aborted compression leaves the plain log unchanged", async () => {
  const path = join(dir, "b.log");
  writeFileSync(path, "x".repeat(5_000_000));
  const stop = new AbortController();
  const work = rotationFiles.compress(path, `${path}.gz`, stop);
  stop.abort(new Error("stopped"));
  await assert.rejects(work);
  assert.equal(statSync(path).size, 5_000_000);
  assert.deepEqual(
    readdirSync(dir).filter((name) => name.startsWith("b.log.")),
    [],
  );
});

test("a log that is gone is no error; a pipe or a link in its place is not read", async () => {
  await rotationFiles.compress(join(dir, "none"), join(dir, "none.gz"), { signal });
  await rotationFiles.remove(join(dir, "none"));
  const pipe = join(dir, "pipe.log");
  execFileSync("mkfifo", [pipe]);
  await rotationFiles.compress(pipe, `${pipe}.gz`, { signal });
  assert.ok(!existsSync(`${pipe}.gz`));
  assert.equal(await rotationFiles.size(pipe), 0);
  assert.equal(await rotationFiles.size(join(dir, "none")), undefined);
  assert.deepEqual(await rotationFiles.names(join(dir, "none")), []);
});

test("a log that is a link is neither missing nor full, whatever it points to", async () => {
  const [target, link] = [join(dir, "docker.log"), join(dir, "linked.log")];
  writeFileSync(target, "x".repeat(100));
  symlinkSync(target, link);
  assert.equal(await rotationFiles.size(link), 0);
});

test("a watch calls once, at the first write", async () => {
  const path = join(dir, "c.log");
  writeFileSync(path, "");
  let calls = 0;
  const written = new Promise<void>((resolve) => {
    rotationFiles.onceWritten(path, () => {
      calls++;
      resolve();
    });
  });
  const alive = setInterval(() => undefined, 1000);
  writeFileSync(path, "x");
  await written;
  writeFileSync(path, "y");
  await new Promise((resolve) => setImmediate(resolve));
  clearInterval(alive);
  assert.equal(calls, 1);
  assert.throws(() => rotationFiles.onceWritten(join(dir, "none"), () => undefined));
});

test("a pipe or a link in place of the temporary file is replaced, and never waited for", async () => {
  for (const put of [
    (name: string) => void execFileSync("mkfifo", [name]),
    (name: string) => symlinkSync(join(dir, "elsewhere"), name),
  ]) {
    const path = join(dir, "d.log");
    writeFileSync(path, "text");
    put(`${path}.gz.tmp`);
    await rotationFiles.compress(path, `${path}.gz`, { signal });
    assert.equal(gunzipSync(readFileSync(`${path}.gz`)).toString(), "text");
  }
  assert.ok(!existsSync(join(dir, "elsewhere")));
});

test("a log gets its name back, but not in place of a new one", async () => {
  const [rotated, path] = [join(dir, "e.log.1"), join(dir, "e.log")];
  writeFileSync(rotated, "old");
  await rotationFiles.restore(rotated, path);
  assert.deepEqual([readFileSync(path, "utf8"), existsSync(rotated)], ["old", false]);
  writeFileSync(rotated, "older");
  await rotationFiles.restore(rotated, path);
  assert.deepEqual([readFileSync(path, "utf8"), readFileSync(rotated, "utf8")], ["old", "older"]);
});

test("an open log is measured as it grows, under any name, until it is removed", async () => {
  const path = join(dir, "open.log");
  writeFileSync(path, "12345");
  const log = await rotationFiles.open(path);
  assert.equal(log?.size(), 5);
  appendFileSync(path, "67");
  assert.equal(log?.size(), 7);
  renameSync(path, `${path}.old`);
  assert.equal(log?.size(), 7);
  rmSync(`${path}.old`);
  assert.equal(log?.size(), undefined);
  log?.close();
});

test("what is no regular file on a local filesystem is not opened", async () => {
  const link = join(dir, "link.log");
  symlinkSync("/etc/hostname", link);
  assert.equal(await rotationFiles.open(join(dir, "missing.log")), undefined);
  assert.equal(await rotationFiles.open(dir), undefined);
  assert.equal(await rotationFiles.open("/proc/self/status"), undefined);
  assert.equal(await rotationFiles.open(link), undefined);
});
