import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { HostError } from "./host-error.ts";
import { readOwnFile } from "./own-file.ts";

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "own-file-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

test("a file is read as it is, one that is missing is undefined, one of the kernel is read in whole", async (t) => {
  const path = join(directory(t), "file");
  assert.equal(await readOwnFile(path), undefined);
  writeFileSync(path, "text\n");
  assert.equal(await readOwnFile(path), "text\n");
  assert.match((await readOwnFile("/proc/self/mountinfo")) ?? "", /\n$/);
});

for (const [name, make] of [
  ["a FIFO", (path: string) => execFileSync("mkfifo", [path])],
  ["a link", (path: string) => symlinkSync("/dev/zero", path)],
  ["a directory", (path: string) => mkdirSync(path)],
  [
    "a huge file",
    (path: string) => {
      writeFileSync(path, "");
      truncateSync(path, 2 ** 40);
    },
  ],
] as const) {
  test(`${name} in the place of a file is refused at once`, async (t) => {
    const path = join(directory(t), "file");
    make(path);
    await assert.rejects(
      readOwnFile(path),
      (error) => error instanceof HostError && error.code === "InvalidArgument" && error.message.includes(path),
    );
  });
}

test("a socket in the place of a file is refused", async (t) => {
  const path = join(directory(t), "file");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  await assert.rejects(readOwnFile(path), /not a regular file/);
  server.close();
});
