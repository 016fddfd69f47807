import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { CgroupProcesses } from "./processes.ts";

describe("processes and their cgroups", () => {
  let dir = "";
  let proc = "";
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), "cgroup-processes-"));
    proc = join(dir, "proc");
    for (const pid of ["1", "7", "8", "self"]) mkdirSync(join(proc, pid, "ns"), { recursive: true });
  });
  afterEach(() => rmSync(dir, { recursive: true }));
  const v1 = (...names: string[]) =>
    names.map((name) => {
      mkdirSync(join(dir, name), { recursive: true });
      return { version: 1 as const, mountpoint: join(dir, name), controllers: [name] };
    });

  test("the root cgroup is listed without the first process and kernel threads", () => {
    const mounts = v1("cpu", "memory");
    writeFileSync(join(dir, "memory/cgroup.procs"), "1\n7\n8\n");
    symlinkSync("/bin/true", join(proc, "7/exe"));
    assert.deepEqual(new CgroupProcesses(mounts, proc).rootProcesses(), [7]);
  });

  test("a process is moved in every hierarchy", () => {
    const processes = new CgroupProcesses(v1("cpu", "memory"), proc);
    assert.equal(processes.isIn(7, "/agents/one"), false);
    processes.move(7, "/agents/one");
    for (const name of ["cpu", "memory"]) {
      assert.equal(readFileSync(join(dir, name, "agents/one/cgroup.procs"), "utf8"), "7");
    }
    assert.equal(processes.isIn(7, "/agents/one"), true);
  });

  test("the PID namespace is compared with the one of init", () => {
    const processes = new CgroupProcesses(v1("memory"), proc);
    assert.equal(processes.sharesInitNamespace(), undefined);
    symlinkSync("pid:[1]", join(proc, "1/ns/pid"));
    symlinkSync("pid:[2]", join(proc, "self/ns/pid"));
    assert.equal(processes.sharesInitNamespace(), false);
    rmSync(join(proc, "self/ns/pid"));
    symlinkSync("pid:[1]", join(proc, "self/ns/pid"));
    assert.equal(processes.sharesInitNamespace(), true);
  });
});
