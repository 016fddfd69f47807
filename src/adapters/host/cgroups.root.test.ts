import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { SystemClock } from "../../lib/clock.ts";
import { HostError, LinuxHost } from "./index.ts";

const host = new LinuxHost({ clock: new SystemClock() });
const name = `/kubelet-test-${process.pid}`;

/** The hierarchies in which this machine lets us make cgroups. */
function made(): string[] {
  return host.cgroupMounts().flatMap(({ mountpoint }) => {
    try {
      mkdirSync(join(mountpoint, name, "pod/container"), { recursive: true });
      return [join(mountpoint, name)];
    } catch {
      return [];
    }
  });
}

test("real cgroups go from every hierarchy, but never while a process is inside", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const directories = made();
  if (directories.length === 0) return t.skip("no cgroup hierarchy is writable");
  t.after(() => {
    for (const directory of directories) {
      for (const path of ["pod/container", "pod", ""])
        if (existsSync(join(directory, path))) rmdirSync(join(directory, path));
    }
  });
  const child = spawn("sleep", ["600"]);
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const taken = directories.filter((directory) => {
    try {
      writeFileSync(join(directory, "pod/container/cgroup.procs"), String(child.pid));
      return true;
    } catch {
      // A cpuset without cpus, or a version 2 group that is not a leaf.
      return false;
    }
  });
  assert.ok(taken.length > 0);
  await assert.rejects(
    host.removeCgroup(`${name}/pod`),
    (error) => error instanceof HostError && error.code === "Busy",
  );
  for (const directory of directories) assert.ok(existsSync(join(directory, "pod/container")), "nothing is removed");
  child.kill("SIGKILL");
  await ended;
  await host.removeCgroup(name);
  for (const directory of directories) assert.equal(existsSync(directory), false);
  await host.removeCgroup(name);
});
