import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { endCgroupProcesses } from "./end-processes.ts";

test("every process in the cgroup and below it is killed, in all hierarchies, and no other", async () => {
  const root = mkdtempSync(join(tmpdir(), "cgroups-"));
  const children = [0, 1, 2].map(() => spawn("sleep", ["60"]));
  const ended = children.map((child) => new Promise((resolve) => child.once("exit", (_code, by) => resolve(by))));
  const [one, two, other] = children.map(({ pid }) => pid);
  try {
    for (const directory of ["a/pod/c1", "b/pod", "b/other"]) mkdirSync(join(root, directory), { recursive: true });
    writeFileSync(join(root, "a/pod/cgroup.procs"), "0\n");
    writeFileSync(join(root, "a/pod/c1/cgroup.procs"), `${one}\n`);
    writeFileSync(join(root, "b/pod/cgroup.procs"), `${one}\n${two}\n`);
    writeFileSync(join(root, "b/other/cgroup.procs"), `${other}\n`);
    const hierarchies = ["a", "b", "absent"].map((name) => join(root, name));
    assert.equal(endCgroupProcesses(hierarchies, "/pod"), 2);
    assert.deepEqual(await Promise.all(ended.slice(0, 2)), ["SIGKILL", "SIGKILL"]);
    assert.equal(children[2]?.exitCode, null);
    assert.equal(endCgroupProcesses(hierarchies, "/pod"), 0, "they are gone");
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(root, { recursive: true });
  }
});
