import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mountNamespace, runInMountNamespace } from "../../../test/support/mount-namespace.ts";
import { SystemClock } from "../../lib/clock.ts";
import { readMountTable } from "./mount-table.ts";
import { Mounts } from "./mounts.ts";
import { SystemCalls } from "./system-calls.ts";

// Every mount of the namespace is private, as on a machine whose `/` is.
if (mountNamespace() === undefined) {
  test("shared mounts in a mount namespace of their own", { skip: process.getuid?.() !== 0 && "needs root" }, () => {
    runInMountNamespace(import.meta.url);
  });
} else {
  defineTests();
}

function defineTests(): void {
  const ways = { "by system call": () => SystemCalls.load(), "by command": () => Promise.resolve(undefined) };
  for (const [name, load] of Object.entries(ways)) {
    const mounts = new Mounts(new SystemClock(), load);
    const attempt = (rule: string, work: (base: string) => Promise<void>): void =>
      void test(`${rule} (${name})`, async () => {
        const base = mkdtempSync(join(tmpdir(), "make-shared-"));
        try {
          await work(base);
        } finally {
          // Unmounting one of two peers unmounts the other too.
          for (const target of targets(base).reverse()) spawnSync("umount", ["--lazy", target]);
          rmSync(base, { recursive: true });
        }
      });

    attempt("a directory on a private mount becomes a shared one, once", async (base) => {
      const root = join(base, "root");
      mkdirSync(root);
      symlinkSync(root, join(base, "link"));
      assert.equal(await mounts.makeShared(join(base, "link")), true);
      assert.equal(await mounts.makeShared(root), false);
      assert.deepEqual(targets(base), [root]);
      // What is mounted below it later reaches a peer.
      mkdirSync(join(root, "volume"));
      mkdirSync(join(base, "peer"));
      execFileSync("mount", ["--bind", root, join(base, "peer")]);
      execFileSync("mount", ["-t", "tmpfs", "tmpfs", join(root, "volume")]);
      writeFileSync(join(root, "volume/file"), "");
      assert.ok(existsSync(join(base, "peer/volume/file")));
    });

    attempt("what is mounted below already stays in sight and becomes shared too", async (base) => {
      mkdirSync(join(base, "volume"));
      execFileSync("mount", ["-t", "tmpfs", "tmpfs", join(base, "volume")]);
      writeFileSync(join(base, "volume/file"), "");
      assert.equal(await mounts.makeShared(base), true);
      assert.ok(existsSync(join(base, "volume/file")));
      assert.equal(readMountTable().findLast(({ target }) => target === join(base, "volume"))?.isShared, true);
    });
  }
}

function targets(base: string): string[] {
  return readMountTable()
    .map(({ target }) => target)
    .filter((target) => target.startsWith(base));
}
