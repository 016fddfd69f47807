import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "../../lib/errors.ts";
import type { CgroupMount } from "../host/cgroups.ts";

/** How the machine's cgroups are to be used: the controllers of version 1, or the one tree of version 2. */
export type Hierarchies =
  | { readonly version: 1; readonly mounts: readonly CgroupMount[] }
  | { readonly version: 2; readonly root: string };

/** Version 1 wins where it has cpu or memory: a unified tree beside it has no controllers that matter. */
export function hierarchiesOf(mounts: readonly CgroupMount[]): Hierarchies | undefined {
  const old = mounts.filter(({ version }) => version === 1);
  const main = ["cpu", "memory"];
  if (old.some(({ controllers }) => controllers.some((name) => main.includes(name))))
    return { version: 1, mounts: old };
  const unified = mounts.find(({ version }) => version === 2);
  return unified === undefined ? undefined : { version: 2, root: unified.mountpoint };
}

/** Every cgroup on the way to this one, from the top: `/a/b` has `/a` and `/a/b`. */
export function levelsOf(path: string): readonly string[] {
  const parts = path.split("/").filter((part) => part !== "");
  return parts.map((_, i) => `/${parts.slice(0, i + 1).join("/")}`);
}

/**
 * Makes the cgroup in every hierarchy, with those above it. Safe to repeat. Synchronous, like all that touches these
 * files: they are the kernel's memory and never wait for a disk, and a thread for each would cost ten times as much.
 */
export function makeCgroup(hierarchies: Hierarchies, path: string): void {
  if (hierarchies.version === 2) return makeUnified(hierarchies.root, path);
  // The devices of a container are the runtime's business: it makes that directory itself.
  const mounts = hierarchies.mounts.filter(({ controllers }) => !controllers.includes("devices"));
  for (const { mountpoint, controllers } of mounts) {
    if (controllers.includes("cpuset")) makeCpuset(mountpoint, path);
    else mkdirSync(join(mountpoint, path), { recursive: true, mode: 0o755 });
  }
}

/** A new cpuset is empty, and nothing can enter it before it has the CPUs and memory nodes of the one above. */
function makeCpuset(mountpoint: string, path: string): void {
  let above = mountpoint;
  for (const level of levelsOf(path)) {
    const directory = join(mountpoint, level);
    makeOne(directory);
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      if (readText(join(directory, file)) !== "") continue;
      writeFileSync(join(directory, file), readText(join(above, file)) ?? "");
    }
    above = directory;
  }
}

/** A controller appears in a cgroup only when every one above hands it on. */
function makeUnified(root: string, path: string): void {
  const controllers = (readText(join(root, "cgroup.controllers")) ?? "").split(" ").filter((name) => name !== "");
  let above = root;
  for (const level of levelsOf(path)) {
    handOn(above, controllers);
    above = join(root, level);
    makeOne(above);
  }
}

/** Not being able to is no error here: writing the limit that needs the controller is. */
function handOn(directory: string, controllers: readonly string[]): void {
  const file = join(directory, "cgroup.subtree_control");
  const have = (readText(file) ?? "").split(" ");
  const missing = controllers.filter((name) => !have.includes(name)).map((name) => `+${name}`);
  if (missing.length === 0) return;
  if (isWritten(file, missing.join(" "))) return;
  for (const one of missing) isWritten(file, one);
}

function isWritten(file: string, text: string): boolean {
  try {
    writeFileSync(file, text);
    return true;
  } catch {
    return false;
  }
}

function makeOne(directory: string): void {
  if (existsSync(directory)) return;
  try {
    mkdirSync(directory, { mode: 0o755 });
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  }
}

/** The trimmed text of a small kernel file; undefined when there is none. */
export function readText(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1").trim();
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOENT" || code === "ENODEV" || code === "EOPNOTSUPP") return undefined;
    throw error;
  }
}
