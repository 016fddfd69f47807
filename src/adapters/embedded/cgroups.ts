import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { errnoOf } from "../../lib/errors.ts";
import type { MountPoint } from "./host.ts";

/** The roots of the mounted hierarchies: one on cgroup v2, one for each controller (and more) on v1. */
export function cgroupHierarchies(mounts: readonly MountPoint[]): string[] {
  const roots = mounts.filter(({ type }) => type === "cgroup" || type === "cgroup2").map(({ target }) => target);
  return [...new Set(roots)];
}

/** Makes `cgroup` in every hierarchy that lets us, and returns those directories. */
export function makeCgroup(hierarchies: readonly string[], cgroup: string): string[] {
  const made: string[] = [];
  for (const root of hierarchies) {
    const path = join(root, cgroup);
    try {
      mkdirSync(path, { recursive: true });
      inheritCpuset(root, path);
      made.push(path);
    } catch {
      // Read-only or not delegated to us: that hierarchy is left out.
    }
  }
  return made;
}

/** A new v1 cpuset is empty and takes no process until it has cpus and memory nodes: take those of the parents. */
function inheritCpuset(root: string, path: string): void {
  if (path === root || !existsSync(join(path, "cpuset.mems")) || existsSync(join(path, "cgroup.controllers"))) return;
  inheritCpuset(root, dirname(path));
  for (const file of ["cpuset.cpus", "cpuset.mems"]) {
    const own = readFileSync(join(path, file), "utf8").trim();
    if (own === "") writeFileSync(join(path, file), readFileSync(join(dirname(path), file), "utf8").trim());
  }
}

/** All cgroups at and below `cgroup` in these hierarchies, the deepest first. */
export function cgroupTree(hierarchies: readonly string[], cgroup: string): string[] {
  const found: string[] = [];
  const walk = (path: string): void => {
    let names: string[];
    try {
      names = readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
    } catch {
      return;
    }
    for (const name of names) walk(join(path, name));
    found.push(path);
  };
  for (const root of hierarchies) walk(join(root, cgroup));
  return found;
}

/** Pids of the processes in one cgroup directory. */
export function cgroupPids(path: string): number[] {
  try {
    return readFileSync(join(path, "cgroup.procs"), "latin1").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Removes one cgroup directory; false while a process or a child is still in it. */
export function removeCgroupDir(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return errnoOf(error) === "ENOENT";
  }
}
