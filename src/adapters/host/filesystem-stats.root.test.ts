import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, rmdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { mountNamespace, runInMountNamespace } from "../../../test/support/mount-namespace.ts";
import { FakeClock } from "../../lib/clock.ts";
import { FilesystemMeter } from "./filesystem-stats.ts";

const skip =
  (process.getuid?.() !== 0 && "needs root") || (!existsSync("/dev/fuse") && "this machine has no /dev/fuse");

if (mountNamespace() === undefined) {
  test("a filesystem that hangs, in a mount namespace of its own", { skip }, () => {
    runInMountNamespace(import.meta.url);
  });
} else {
  defineTests();
}

/** Mounts a filesystem that never answers: nobody reads what the kernel asks of it. */
function hangingFilesystem(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "hanging-"));
  const device = openSync("/dev/fuse", "r+");
  const options = "fd=3,rootmode=40000,user_id=0,group_id=0";
  execFileSync("mount", ["-i", "-t", "fuse", "-o", options, "none", path], {
    stdio: ["ignore", "ignore", "inherit", device],
  });
  t.after(() => {
    // Whoever waits for it gets an error.
    closeSync(device);
    execFileSync("umount", ["--lazy", path]);
    rmdirSync(path);
  });
  return path;
}

/** Each count takes some milliseconds. */
async function reached(count: () => number, wanted: number): Promise<void> {
  for (let tries = 0; count() !== wanted; tries++) {
    assert.ok(tries < 1000, `${count()} child processes instead of ${wanted}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function defineTests(): void {
  test("filesystems that hang hold no thread of the agent, and leave no process", async (t) => {
    const clock = new FakeClock();
    const meter = new FilesystemMeter(clock);
    const path = hangingFilesystem(t);
    // More than there are threads.
    const paths = Array.from({ length: 6 }, (_, index) => `${path}${"/.".repeat(index)}`);
    const measured = paths.map((one) => meter.measure(one).catch((error: unknown) => error));
    const running = (): number =>
      spawnSync("pgrep", ["-f", `^stat .*-- ${path}`])
        .stdout.toString()
        .split("\n").length - 1;
    await reached(running, paths.length);
    assert.ok((await readFile("/proc/self/comm", "utf8")).length > 0, "files can be read meanwhile");
    await clock.advance(5000);
    for (const error of await Promise.all(measured)) assert.equal((error as { code?: string }).code, "Timeout");
    await reached(running, 0);
  });
}
