import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { readVolumeFile } from "./volume-file.ts";

describe("a file in a volume", () => {
  const dir = mkdtempSync(join(tmpdir(), "volume-file-"));
  const root = join(dir, "volume");
  mkdirSync(join(root, "sub"), { recursive: true });
  writeFileSync(join(dir, "outside"), "secret");
  writeFileSync(join(root, "sub/file"), "text");
  symlinkSync("sub/file", join(root, "inside-link"));
  symlinkSync("../outside", join(root, "outside-link"));
  symlinkSync(join(dir, "outside"), join(root, "absolute-link"));
  symlinkSync("..", join(root, "up"));
  execFileSync("mkfifo", [join(root, "pipe")]);
  after(() => rmSync(dir, { recursive: true, force: true }));

  test("is read, also through links that stay inside", async () => {
    assert.equal(await readVolumeFile(root, "sub/file", 100), "text");
    assert.equal(await readVolumeFile(root, "inside-link", 100), "text");
    assert.equal(await readVolumeFile(root, "sub/file", 4), "text");
  });

  test("that does not exist is undefined", async () => {
    assert.equal(await readVolumeFile(root, "none", 100), undefined);
    assert.equal(await readVolumeFile(root, "sub/file/deeper", 100), undefined);
  });

  for (const path of ["outside-link", "absolute-link", "up/outside", "../outside", "/etc/passwd", ""]) {
    test(`${JSON.stringify(path)} leads outside and is refused`, async () => {
      await assert.rejects(readVolumeFile(root, path, 100), (error: Error) => !error.message.includes("secret"));
    });
  }

  test("a pipe, a directory and a file that is too long are refused, and nothing waits", async () => {
    await assert.rejects(readVolumeFile(root, "pipe", 100), /not a regular file/);
    await assert.rejects(readVolumeFile(root, "sub", 100), /not a regular file/);
    await assert.rejects(readVolumeFile(root, "sub/file", 3), /longer than 3 bytes/);
  });
});
