import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mountNamespace, runInMountNamespace } from "../../../test/support/mount-namespace.ts";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { SystemClock } from "../../lib/clock.ts";
import { HostError, LinuxHost } from "./index.ts";
import { readMountTable } from "./mount-table.ts";
import { Mounts, mountAt } from "./mounts.ts";
import { removeTree } from "./remove-tree.ts";
import { chooseTreeAccess, ProcTreeAccess, type TreeAccess } from "./tree-access.ts";

// Everything is mounted in a namespace of its own, which goes with the process, whatever happens.

if (mountNamespace() === undefined) {
  test("data-loss tests in a mount namespace of their own", { skip: process.getuid?.() !== 0 && "needs root" }, () => {
    runInMountNamespace(import.meta.url);
  });
} else {
  defineTests();
}

/** How tsx loads itself; the flags of a test runner must not go along. */
interface Scene {
  readonly base: string;
  /** A pod's emptyDir, which is to be removed. */
  readonly tree: string;
  /** A user's data, which must survive. */
  readonly data: string;
}

function scene(): Scene {
  const base = mkdtempSync(join(tmpdir(), "data-loss-"));
  const [tree, data] = [join(base, "pods/uid/volumes/empty"), join(base, "data")];
  mkdirSync(join(data, "deep"), { recursive: true });
  writeFileSync(join(data, "precious"), "keep");
  writeFileSync(join(data, "deep/precious"), "keep");
  mkdirSync(tree, { recursive: true });
  writeFileSync(join(tree, "scratch"), "");
  return { base, tree, data };
}

function assertUntouched({ data }: Scene): void {
  for (const name of ["precious", "deep/precious"]) assert.equal(readFileSync(join(data, name), "utf8"), "keep");
}

/** Test directories are on a filesystem of their own namespace: unmount all, then remove. */
function clean({ base }: Scene): void {
  const targets = readMountTable().map(({ target }) => target);
  for (const target of targets.reverse()) {
    if (target.startsWith(`${base}/`)) execFileSync("umount", ["--lazy", target]);
  }
  assert.ok(!readMountTable().some(({ target }) => target.startsWith(base)));
  rmSync(base, { recursive: true });
}

const isMounted = (error: unknown): boolean => {
  assert.ok(error instanceof HostError, String(error));
  assert.equal(error.code, "Mounted", error.message);
  return true;
};

function defineTests(): void {
  const clock = new SystemClock();
  const host = new LinuxHost({ clock });
  const bind = (source: string, target: string): void => void execFileSync("mount", ["--bind", source, target]);

  test("a hostPath bound inside an emptyDir refuses the removal, and nothing at all is touched", async () => {
    const at = scene();
    mkdirSync(join(at.tree, "sub/host path\n"), { recursive: true });
    bind(at.data, join(at.tree, "sub/host path\n"));
    await assert.rejects(host.removeTree(at.tree), isMounted);
    assertUntouched(at);
    assert.ok(existsSync(join(at.tree, "scratch")), "refused before the first unlink");
    clean(at);
  });

  test("a mount at the root of the tree refuses, also when the directory above is asked for", async () => {
    const at = scene();
    bind(at.data, at.tree);
    await assert.rejects(host.removeTree(at.tree), isMounted);
    await assert.rejects(host.removeTree(`${at.tree}/`), isMounted);
    await assert.rejects(host.removeTree(join(at.base, "pods/uid")), isMounted);
    assertUntouched(at);
    clean(at);
  });

  test("a part of what is mounted can be removed when asked for by name, but no mount below it", async () => {
    const at = scene();
    await host.mountTmpfs(at.tree, { mode: 0o777 });
    mkdirSync(join(at.tree, "part/sub"), { recursive: true });
    await host.removeTree(join(at.tree, "part"));
    assert.deepEqual(readdirSync(at.tree), []);
    await host.unmount(at.tree);
    await host.removeTree(at.tree);
    assert.equal(existsSync(at.tree), false);
    clean(at);
  });

  test("a file bound over a file refuses", async () => {
    const at = scene();
    bind(join(at.data, "precious"), join(at.tree, "scratch"));
    await assert.rejects(host.removeTree(at.tree), isMounted);
    await assert.rejects(host.removeTree(join(at.tree, "scratch")), isMounted);
    assertUntouched(at);
    clean(at);
  });

  const accesses: [string, () => Promise<TreeAccess>][] = [
    ["openat2", chooseTreeAccess],
    ["the fallback", async () => new ProcTreeAccess()],
  ];
  for (const [label, access] of accesses) {
    // The mount table is empty in these: only the opening itself stands between the removal and the data.
    const blind = { mountTable: () => [] };

    test(`${label}: a bind mount of the same filesystem that the check did not see is never entered`, async () => {
      const at = scene();
      mkdirSync(join(at.tree, "a/b"), { recursive: true });
      bind(at.data, join(at.tree, "a/b"));
      await assert.rejects(removeTree({ access: await access(), ...blind }, at.tree), isMounted);
      assertUntouched(at);
      clean(at);
    });

    test(`${label}: a mount at the tree's own root that the check did not see is never entered`, async () => {
      const at = scene();
      bind(at.data, at.tree);
      await assert.rejects(removeTree({ access: await access(), ...blind }, at.tree), isMounted);
      assertUntouched(at);
      clean(at);
    });

    test(`${label}: a mount that appears between the check and the opening ends the removal`, async () => {
      const at = scene();
      mkdirSync(join(at.tree, "sub/inner"), { recursive: true });
      const onOpen = async (path: string): Promise<void> => {
        if (path === join(at.tree, "sub/inner")) bind(at.data, path);
      };
      const deps = { access: await access(), mountTable: readMountTable, onOpen };
      await assert.rejects(removeTree(deps, at.tree), isMounted);
      assertUntouched(at);
      clean(at);
    });

    test(`${label}: a mount over a directory that is open already hides the data from us, not us from it`, async () => {
      const at = scene();
      mkdirSync(join(at.tree, "sub/inner"), { recursive: true });
      const onOpen = async (path: string): Promise<void> => {
        // `sub` is open and being emptied; by path its content would now be the user's.
        if (path === join(at.tree, "sub/inner")) bind(at.data, join(at.tree, "sub"));
      };
      mkdirSync(join(at.data, "inner"));
      writeFileSync(join(at.data, "inner/precious"), "keep");
      const deps = { access: await access(), mountTable: readMountTable, onOpen };
      await assert.rejects(removeTree(deps, at.tree), isMounted);
      assertUntouched(at);
      assert.equal(readFileSync(join(at.data, "inner/precious"), "utf8"), "keep");
      clean(at);
    });

    test(`${label}: a file bound over a file that the check did not see keeps its source`, async () => {
      const at = scene();
      bind(join(at.data, "precious"), join(at.tree, "scratch"));
      await assert.rejects(removeTree({ access: await access(), ...blind }, at.tree), isMounted);
      assertUntouched(at);
      clean(at);
    });

    test(`${label}: a deep tree with a mount at its end ends there`, async () => {
      const at = scene();
      const deep = join(at.tree, ...Array.from({ length: 260 }, () => "d"));
      mkdirSync(deep, { recursive: true });
      bind(at.data, deep);
      await assert.rejects(removeTree({ access: await access(), ...blind }, at.tree), isMounted);
      assertUntouched(at);
      clean(at);
    });
  }

  for (const native of [true, false]) {
    const label = native ? "by system call" : "by command";
    const mounts = new Mounts(clock, native ? undefined : async () => undefined);

    test(`${label}: tmpfs has its size and mode, and unmounting twice is fine`, async () => {
      const at = scene();
      await mounts.mount({ kind: "tmpfs", target: at.tree, sizeBytes: 1024 * 1024, mode: 0o750 });
      const entry = mountAt(at.tree);
      assert.equal(entry?.type, "tmpfs");
      assert.ok(entry.superOptions.includes("size=1024k") && entry.superOptions.includes("mode=750"));
      assert.equal(host.isMountPoint(at.tree), true);
      await mounts.unmount(at.tree);
      await mounts.unmount(at.tree);
      await mounts.unmount(join(at.tree, "no"));
      assert.equal(host.isMountPoint(at.tree), false);
      clean(at);
    });

    test(`${label}: a read-only bind mount is read-only and keeps the flags that it came with`, async () => {
      const at = scene();
      execFileSync("mount", ["-t", "tmpfs", "-o", "nosuid,nodev,noexec", "tmpfs", at.data]);
      await mounts.mount({ kind: "bind", source: at.data, target: at.tree, readonly: true });
      const options = mountAt(at.tree)?.options ?? [];
      for (const flag of ["ro", "nosuid", "nodev", "noexec"]) assert.ok(options.includes(flag), options.join());
      assert.throws(() => writeFileSync(join(at.tree, "x"), ""), { code: "EROFS" });
      writeFileSync(join(at.data, "x"), "");
      await mounts.unmount(at.tree);
      clean(at);
    });

    test(`${label}: a mount that cannot be is a HostError and a busy one can be detached`, async () => {
      const at = scene();
      await assert.rejects(mounts.mount({ kind: "bind", source: join(at.base, "no"), target: at.tree }), HostError);
      await mounts.mount({ kind: "tmpfs", target: at.tree, mode: 0o755 });
      const cwd = process.cwd();
      process.chdir(at.tree);
      try {
        await assert.rejects(mounts.unmount(at.tree), HostError);
        await mounts.unmount(at.tree, { lazy: true });
      } finally {
        process.chdir(cwd);
      }
      assert.equal(host.isMountPoint(at.tree), false);
      clean(at);
    });
  }

  test("a full disk leaves an atomically written file as it was, and no temporary file", async () => {
    const at = scene();
    await host.mountTmpfs(at.tree, { sizeBytes: 64 * 1024, mode: 0o755 });
    const file = join(at.tree, "state");
    await writeAtomic(file, "old");
    await assert.rejects(writeAtomic(file, "x".repeat(200_000)), { code: "ENOSPC" });
    assert.equal(readFileSync(file, "utf8"), "old");
    assert.deepEqual(readdirSync(at.tree), ["state"]);
    await host.unmount(at.tree);
    clean(at);
  });
}
