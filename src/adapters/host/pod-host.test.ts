import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { chmod, mkdir, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { PodHost } from "./pod-host.ts";

const removed: string[] = [];
const host = new PodHost({
  removeTree: (path) => Promise.resolve(void removed.push(path)),
  mountTmpfs: () => Promise.resolve(),
  unmount: () => Promise.resolve(),
  isMountPoint: () => false,
  kindOf: () => Promise.resolve(undefined),
});

let base = "";
let umask = 0;
before(() => {
  base = mkdtempSync(join(tmpdir(), "pod-host-"));
  umask = process.umask(0o077);
});
after(() => {
  process.umask(umask);
  rmSync(base, { recursive: true, force: true });
});

function modeOf(path: string): number {
  return statSync(path).mode & 0o7777;
}

describe("directories", () => {
  test("have the mode that was asked for, whatever the umask is", async () => {
    const path = join(base, "modes");
    await host.makeDir(path, 0o777);
    assert.equal(modeOf(path), 0o777);
  });

  test("are created with their parents, which others may not write to", async () => {
    const before = process.umask(0);
    try {
      await host.makeDir(join(base, "deep/er/volume"), 0o777);
    } finally {
      process.umask(before);
    }
    assert.equal(modeOf(join(base, "deep/er/volume")), 0o777);
    assert.equal(modeOf(join(base, "deep/er")), 0o755);
    assert.equal(modeOf(join(base, "deep")), 0o755);
  });

  test("that exist keep their mode", async () => {
    const path = join(base, "kept");
    await host.makeDir(path, 0o777);
    await chmod(path, 0o701);
    await host.makeDir(path, 0o777);
    assert.equal(modeOf(path), 0o701);
  });

  test("that an earlier agent created without their mode get it", async () => {
    const path = join(base, "unfinished");
    mkdirSync(path, { mode: 0 });
    await host.makeDir(path, 0o777);
    assert.equal(modeOf(path), 0o777);
  });

  test("may be reached through a link", async () => {
    await mkdir(join(base, "target"), { mode: 0o755 });
    await symlink("target", join(base, "linked"));
    await host.makeDir(join(base, "linked"), 0o755);
    await host.makeDir(join(base, "linked/below"), 0o755);
    assert.equal(statSync(join(base, "target/below")).isDirectory(), true);
  });

  test("cannot be where a file is", async () => {
    writeFileSync(join(base, "taken"), "");
    await assert.rejects(host.makeDir(join(base, "taken"), 0o755), { code: "EEXIST" });
  });

  test("are listed; a missing one is empty", async () => {
    writeFileSync(join(base, "listed"), "");
    assert.ok((await host.list(base)).includes("listed"));
    assert.deepEqual(await host.list(join(base, "nowhere")), []);
    assert.deepEqual(await host.list(join(base, "listed")), []);
  });
});

describe("files", () => {
  test("are written with the mode that was asked for, whatever the umask is, also the second time", async () => {
    const path = join(base, "pods/uid/etc-hosts");
    await host.writeFile(path, "one two three", 0o644);
    const { ino } = statSync(path);
    await host.writeFile(path, "four", 0o644);
    assert.equal(readFileSync(path, "utf8"), "four");
    assert.equal(modeOf(path), 0o644);
    // The same file: containers have it mounted.
    assert.equal(statSync(path).ino, ino);
    assert.equal(modeOf(join(base, "pods/uid")) & 0o007, 0);
  });

  test("makeFile creates an empty one, and leaves an existing one unchanged", async () => {
    const path = join(base, "made");
    await host.makeFile(path, 0o600);
    assert.equal(statSync(path).size, 0);
    writeFileSync(path, "content");
    await host.makeFile(path, 0o600);
    assert.equal(readFileSync(path, "utf8"), "content");
  });

  test("makeFile does not create the parent", async () => {
    await assert.rejects(host.makeFile(join(base, "no/such/dir"), 0o644), { code: "ENOENT" });
  });

  const tails: [string, number, string][] = [
    ["abcdef", 3, "def"],
    ["abcdef", 6, "abcdef"],
    ["abcdef", 100, "abcdef"],
    ["", 10, ""],
  ];
  for (const [text, bytes, want] of tails) {
    test(`the last ${bytes} bytes of "${text}" are "${want}"`, async () => {
      const path = join(base, "tail");
      writeFileSync(path, text);
      assert.equal(await host.readTail(path, bytes), want);
    });
  }

  test("a missing one reads as empty", async () => {
    assert.equal(await host.readTail(join(base, "nowhere"), 10), "");
    assert.equal(host.readSmall(join(base, "nowhere")), "");
  });

  test("any other error is not treated as an empty file", async () => {
    await assert.rejects(host.readTail(base, 10), /not a regular file/);
    assert.throws(() => host.readSmall(base), { code: "EISDIR" });
  });

  test("the tail of a link is not read, wherever it leads", async () => {
    const [secret, link] = [join(base, "token"), join(base, "0.log")];
    writeFileSync(secret, "token of another pod");
    symlinkSync(secret, link);
    await assert.rejects(host.readTail(link, 100), /0\.log: not a regular file/);
  });

  test("exist or do not", () => {
    assert.deepEqual([host.exists(base), host.exists(join(base, "nowhere"))], [true, false]);
  });

  test("a link replaces the link that was there, and makes its directory", async () => {
    const path = join(base, "links/app.log");
    await host.symlink("/logs/0.log", path);
    await host.symlink("/logs/1.log", path);
    assert.equal(readlinkSync(path), "/logs/1.log");
    assert.equal(await host.readLink(path), "/logs/1.log");
    assert.equal(await host.readLink(base), undefined);
    assert.equal(await host.readLink(join(base, "nowhere")), undefined);
  });

  test("are removed; removing a missing one succeeds", async () => {
    const path = join(base, "old");
    writeFileSync(path, "");
    await host.removeFile(path);
    await host.removeFile(path);
    await host.removeFile(join(base, "nowhere/old"));
    assert.equal(host.exists(path), false);
  });
});

describe("trees", () => {
  test("are removed only by removeTree of the host, which is not called for a missing one", async () => {
    await host.removeTree(join(base, "nowhere"));
    assert.deepEqual(removed, []);
    mkdirSync(join(base, "tree"));
    await host.removeTree(join(base, "tree"));
    assert.deepEqual(removed, [join(base, "tree")]);
  });
});
