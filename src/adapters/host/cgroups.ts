import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
import { HostError, hostError } from "./host-error.ts";
import type { MountEntry } from "./mount-table.ts";

/** A mounted cgroup hierarchy. */
export interface CgroupMount {
  readonly version: 1 | 2;
  readonly mountpoint: string;
  /** Of version 1; a named hierarchy has its name (`name=systemd`). */
  readonly controllers: readonly string[];
}

/** What of the super options of a v1 mount is no controller. */
const NO_CONTROLLER = /^(rw|ro|xattr|clone_children|cpuset_v2_mode|favordynmods|noprefix|release_agent=.*|relatime)$/;

/** The hierarchies in a mount table, each once. Mounts of an outer cgroup namespace are not ours: paths differ in them. */
export function cgroupMountsIn(table: readonly MountEntry[]): CgroupMount[] {
  const found = new Map<string, CgroupMount>();
  for (const { type, root, target, superOptions } of table) {
    if (root === "/.." || root.startsWith("/../")) continue;
    if (type === "cgroup2") found.set(target, { version: 2, mountpoint: target, controllers: [] });
    if (type !== "cgroup") continue;
    const controllers = superOptions.filter((option) => !NO_CONTROLLER.test(option));
    found.set(target, { version: 1, mountpoint: target, controllers });
  }
  return [...found.values()];
}

/** A process that has just been killed leaves its cgroup a little later: tried this often, this long apart (ms). */
const ATTEMPTS = 10;
const WAIT_MS = 20;

/**
 * Removes a cgroup and those below it from all hierarchies, the deepest first; one that is not there is success.
 * Never ends a process: while one is inside, nothing is removed and the answer is `Busy`.
 */
export async function removeCgroup(
  deps: { mounts: readonly CgroupMount[]; clock: Clock },
  path: string,
): Promise<void> {
  const parts = path.split("/").slice(1);
  if (!path.startsWith("/") || parts.some((part) => part === "" || part === "." || part === "..")) {
    throw new HostError("InvalidArgument", `${JSON.stringify(path)} is not a cgroup that may be removed`);
  }
  for (let attempt = 1; ; attempt++) {
    try {
      return await removeOnce(deps.mounts, path);
    } catch (error) {
      const known = hostError(`remove cgroup ${path}`, error);
      if (known.code !== "Busy" || attempt === ATTEMPTS) throw known;
      await deps.clock.sleep(WAIT_MS);
    }
  }
}

async function removeOnce(mounts: readonly CgroupMount[], path: string): Promise<void> {
  const directories = mounts.flatMap(({ mountpoint }) => deepestFirst(join(mountpoint, path)));
  const inside = new Set(directories.flatMap(processesIn));
  if (inside.size > 0) {
    const some = [...inside].slice(0, 5).join(", ");
    throw new HostError("Busy", `remove cgroup ${path}: it has ${inside.size} processes: ${some}`);
  }
  for (const directory of directories) {
    await rmdir(directory).catch((error: unknown) => {
      if (errnoOf(error) !== "ENOENT") throw error;
    });
  }
}

function deepestFirst(directory: string): string[] {
  return [...cgroupsIn(directory).flatMap(deepestFirst), ...(existsSync(directory) ? [directory] : [])];
}

/**
 * The cgroups right below one. A directory of the kernel's has a link for each: with two there is none below, and its
 * many files need not be read.
 */
export function cgroupsIn(directory: string): string[] {
  try {
    const stats = statSync(directory, { throwIfNoEntry: false });
    if (stats === undefined || stats.nlink === 2) return [];
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.flatMap((entry) => (entry.isDirectory() ? [join(directory, entry.name)] : []));
  } catch (error) {
    // Gone meanwhile; or a container that has cgroups of its own nested them deeper than a path may be long.
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENAMETOOLONG") return [];
    throw error;
  }
}

function processesIn(directory: string): string[] {
  try {
    return readFileSync(join(directory, "cgroup.procs"), "latin1").split("\n").filter(Boolean);
  } catch (error) {
    const code = errnoOf(error);
    // Gone meanwhile, or a threaded cgroup of version 2, whose processes its parent shows.
    if (code === "ENOENT" || code === "ENODEV" || code === "EOPNOTSUPP" || code === "ENOTSUP") return [];
    throw error;
  }
}
