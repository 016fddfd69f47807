import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { endCgroupProcesses, pidsBelow } from "./end-processes.ts";

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
    for (const file of ["a/pod/pids.max", "b/pod/cgroup.kill", "b/other/pids.max"]) writeFileSync(join(root, file), "");
    const hierarchies = ["a", "b", "absent"].map((name) => join(root, name));
    assert.equal(endCgroupProcesses(hierarchies, "/pod"), 2);
    assert.deepEqual(await Promise.all(ended.slice(0, 2)), ["SIGKILL", "SIGKILL"]);
    assert.equal(children[2]?.exitCode, null);
    const written = ["a/pod/pids.max", "b/pod/cgroup.kill", "b/other/pids.max"].map((file) =>
      readFileSync(join(root, file), "utf8"),
    );
    assert.deepEqual(written, ["0", "1", ""], "nothing in it can fork any more");
    assert.equal(endCgroupProcesses(hierarchies, "/pod"), 0, "they are gone");
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(root, { recursive: true });
  }
});

test("a cgroup in which nothing runs is left as it is", () => {
  const root = mkdtempSync(join(tmpdir(), "cgroups-"));
  try {
    mkdirSync(join(root, "pod"));
    for (const file of ["pids.max", "cgroup.procs"]) writeFileSync(join(root, "pod", file), "");
    assert.equal(endCgroupProcesses([root], "/pod"), 0);
    assert.equal(readFileSync(join(root, "pod/pids.max"), "utf8"), "");
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("cgroups that a container nested deeper than a path may be long are left out", () => {
  const root = mkdtempSync(join(tmpdir(), "cgroups-"));
  try {
    writeFileSync(join(root, "cgroup.procs"), "99\n");
    // Step by step, with the longest names: the path of the last one is longer than the kernel takes.
    const nest = 'n=$(printf "%0255d" 0); for i in $(seq 15); do mkdir $n; cd $n; echo $i > cgroup.procs; done';
    execFileSync("sh", ["-ec", `${nest}; mkdir $n; echo 16 > $n/cgroup.procs`], { cwd: root });
    const found = pidsBelow(root);
    assert.ok(found.includes(99) && found.includes(15) && !found.includes(16), String(found));
  } finally {
    // It goes from directory to directory.
    execFileSync("rm", ["-rf", root]);
  }
});
