import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Worker } from "node:worker_threads";
import { SystemClock } from "../../lib/clock.ts";
import { HostSystemLogs } from "./system-logs.ts";

const dir = mkdtempSync(join(tmpdir(), "system-logs-"));
after(() => rmSync(dir, { recursive: true }));
const root = join(dir, "log");
mkdirSync(join(root, "sub"), { recursive: true });
writeFileSync(join(root, "syslog"), "0123456789");
writeFileSync(join(dir, "secret"), "secret");
symlinkSync(join(dir, "secret"), join(root, "leak"));
symlinkSync(dir, join(root, "sub", "out"));
symlinkSync("../syslog", join(root, "sub", "inside"));
symlinkSync(join(root, "syslog"), join(root, "sub", "absolute"));
execFileSync("mkfifo", [join(root, "pipe")]);
const logs = new HostSystemLogs(new SystemClock(), root);
const { signal } = new AbortController();
const stop = new Int32Array(new SharedArrayBuffer(4));

test("files and directories below the root are found, with links that stay inside", async () => {
  const found = await logs.look("");
  assert.deepEqual(found?.kind === "directory" && found.entries.map(({ name }) => name), [
    "leak",
    "pipe",
    "sub",
    "syslog",
  ]);
  assert.equal((await logs.look("syslog"))?.kind, "file");
  assert.equal((await logs.look("sub/inside"))?.kind, "file");
  assert.equal((await logs.look("sub/absolute"))?.kind, "file");
});

for (const path of ["leak", "sub/out/secret", "../secret", "sub/../../secret", "pipe", "nope", "syslog/x", "a\0b"]) {
  test(`${JSON.stringify(path)} is not there`, async () => {
    assert.equal(await logs.look(path), undefined);
  });
}

test("a part of a file is read, and nothing outside even if asked for", async () => {
  const read = async (path: string): Promise<string> => {
    let text = "";
    for await (const chunk of logs.read(path, { from: 2, to: 5 }, { signal })) text += Buffer.from(chunk).toString();
    return text;
  };
  assert.equal(await read("syslog"), "234");
  assert.equal(await read("sub/inside"), "234");
  assert.equal(await read("leak"), "");
});

test("a directory that is swapped for a link while it is read never leads outside", async () => {
  const swapped = join(root, "swapped");
  mkdirSync(join(dir, "outside"));
  writeFileSync(join(dir, "outside", "file"), "secret");
  mkdirSync(join(root, "real"));
  writeFileSync(join(root, "real", "file"), "public");
  symlinkSync(join(dir, "outside"), join(root, "link"));
  // Puts the directory and the link under one name in turn until it is told to stop.
  const swapper = new Worker(
    `const { renameSync } = require("node:fs");
     const { workerData: { root, swapped, stop } } = require("node:worker_threads");
     while (Atomics.load(stop, 0) === 0)
       for (const name of ["real", "link"]) {
         renameSync(root + "/" + name, swapped);
         renameSync(swapped, root + "/" + name);
       }`,
    { eval: true, workerData: { root, swapped, stop } },
  );
  const ended = new Promise((resolve) => swapper.once("exit", resolve));
  try {
    for (let round = 0; round < 2000; round++) {
      let text = "";
      try {
        for await (const chunk of logs.read("swapped/file", { from: 0, to: 6 }, { signal }))
          text += Buffer.from(chunk).toString();
      } catch {
        // Removed between two steps: nothing was read.
      }
      assert.notEqual(text, "secret", `round ${round}`);
    }
  } finally {
    Atomics.store(stop, 0, 1);
    await ended;
  }
});
