import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { mountNamespace, runInMountNamespace } from "../../test/support/mount-namespace.ts";
import { pod } from "../../test/support/pods.ts";
import { type FakeDriver, stagedKind, stageOf } from "../../test/support/staged-kind.ts";
import { LinuxHost } from "../adapters/host/index.ts";
import { readMountTable } from "../adapters/host/mount-table.ts";
import { LinuxVolumeHost } from "../adapters/host/volume-host.ts";
import { SystemClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { VolumeReconciler } from "./index.ts";

// Everything is mounted in a namespace of its own.
if (mountNamespace() === undefined) {
  test("staged volumes on real mounts", { skip: process.getuid?.() !== 0 && "needs root" }, () => {
    runInMountNamespace(import.meta.url);
  });
} else {
  defineTests();
}

function defineTests(): void {
  const never = { signal: new AbortController().signal };
  const user = (name: string): Pod =>
    pod(name)
      .container("app")
      .with({ volumes: [{ name: "v", csi: { driver: "disk-1" } }] })
      .build();

  test("two pods share a stage; other agents tear both down by what is on disk", async () => {
    const root = mkdtempSync(join(tmpdir(), "staged-"));
    const driver: FakeDriver = { calls: [], faults: new Map() };
    const clock = new SystemClock();
    const agent = (): VolumeReconciler =>
      new VolumeReconciler(
        {
          host: new LinuxVolumeHost(new LinuxHost({ clock }), clock),
          clock,
          log: silent,
          objects: { get: () => Promise.reject(new Error("connection refused")), onChange: () => undefined },
          node: { allocatable: {}, labels: {}, syncMs: 60_000 },
          event: () => undefined,
          waiting: () => undefined,
        },
        { rootDir: root, kinds: [stagedKind(driver)] },
      );
    const directory = (name: string): string => join(root, `pods/uid-of-${name}/volumes/test.example~staged/v`);
    const targets = (): string[] =>
      readMountTable()
        .map(({ target }) => target)
        .filter((target) => target.startsWith(root));
    try {
      const first = agent();
      for (const name of ["a", "b"]) await first.prepare(user(name), never);
      writeFileSync(join(directory("a"), "mount/file"), "shared");
      assert.equal(readFileSync(join(directory("b"), "mount/file"), "utf8"), "shared");
      // What a write that was killed leaves does not keep the directory.
      writeFileSync(join(directory("a"), ".vol_data.json.1.1.tmp"), "{");
      await agent().teardown("uid-of-a", never);
      assert.equal(existsSync(directory("a")), false);
      assert.equal(readFileSync(join(directory("b"), "mount/file"), "utf8"), "shared");
      assert.deepEqual(await agent().removeOrphans(() => false, never), []);
      assert.deepEqual(targets(), []);
      assert.equal(existsSync(join(root, stageOf("disk-1"))), false);
      assert.deepEqual(driver.calls.slice(-2), ["unpublish disk-1", "unstage disk-1"]);
    } finally {
      for (const target of targets().reverse()) execFileSync("umount", ["--lazy", target]);
      rmSync(root, { recursive: true });
    }
  });
}
