import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
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

/** Makes the cgroup in every hierarchy, with those above it. Safe to repeat. */
export async function makeCgroup(hierarchies: Hierarchies, path: string): Promise<void> {
  if (hierarchies.version === 2) return makeUnified(hierarchies.root, path);
  // The devices of a container are the runtime's business: it makes that directory itself.
  const mounts = hierarchies.mounts.filter(({ controllers }) => !controllers.includes("devices"));
  await Promise.all(
    mounts.map(async ({ mountpoint, controllers }) => {
      if (controllers.includes("cpuset")) return makeCpuset(mountpoint, path);
      await mkdir(join(mountpoint, path), { recursive: true, mode: 0o755 });
    }),
  );
}

/** A new cpuset is empty, and nothing can enter it before it has the CPUs and memory nodes of the one above. */
async function makeCpuset(mountpoint: string, path: string): Promise<void> {
  let above = mountpoint;
  for (const level of levelsOf(path)) {
    const directory = join(mountpoint, level);
    await makeOne(directory);
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      if (readText(join(directory, file)) !== "") continue;
      await writeFile(join(directory, file), readText(join(above, file)) ?? "");
    }
    above = directory;
  }
}

/** A controller appears in a cgroup only when every one above hands it on. */
async function makeUnified(root: string, path: string): Promise<void> {
  const controllers = (readText(join(root, "cgroup.controllers")) ?? "").split(" ").filter((name) => name !== "");
  let above = root;
  for (const level of levelsOf(path)) {
    await handOn(above, controllers);
    above = join(root, level);
    await makeOne(above);
  }
}

/** Not being able to is no error here: writing the limit that needs the controller is. */
async function handOn(directory: string, controllers: readonly string[]): Promise<void> {
  const file = join(directory, "cgroup.subtree_control");
  const have = (readText(file) ?? "").split(" ");
  const missing = controllers.filter((name) => !have.includes(name)).map((name) => `+${name}`);
  if (missing.length === 0) return;
  try {
    await writeFile(file, missing.join(" "));
  } catch {
    for (const one of missing) await writeFile(file, one).catch(() => undefined);
  }
}

async function makeOne(directory: string): Promise<void> {
  try {
    await mkdir(directory, { mode: 0o755 });
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
