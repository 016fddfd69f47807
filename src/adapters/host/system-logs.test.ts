import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
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
execFileSync("mkfifo", [join(root, "pipe")]);
const logs = new HostSystemLogs(new SystemClock(), root);
const { signal } = new AbortController();

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
