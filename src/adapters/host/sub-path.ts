import { constants } from "node:fs";
import { chmod, lstat, mkdir, open, rmdir, stat, unlink, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "../../lib/errors.ts";
import { HostError, hostError } from "./host-error.ts";
import { mountAt } from "./mounts.ts";
import { closeDescriptor, O_PATH, openInside, statDescriptor } from "./open-inside.ts";
import type { SystemCalls } from "./system-calls.ts";

/** A part of a volume that a container gets, and the directory of the agent where it is mounted for the runtime. */
export interface SubPathRequest {
  /** The volume's directory. */
  readonly root: string;
  /** Relative, without `..`; what is missing is made, with the mode of the volume. */
  readonly subPath: string;
  readonly target: string;
}

export interface SubPathDeps {
  readonly calls: SystemCalls | undefined;
  bind(source: string, target: string): Promise<void>;
  unmount(target: string): Promise<void>;
}

/**
 * Binds what is at `subPath` inside the volume to `target`. The kernel resolves the path below the volume's descriptor
 * and what it finds is mounted by its own descriptor, so no link that a container swaps meanwhile leads anywhere else.
 * Safe to repeat: a target that shows the same thing stays, another is replaced.
 */
export async function bindSubPath(deps: SubPathDeps, request: SubPathRequest): Promise<void> {
  const { root, subPath, target } = request;
  if (subPath.startsWith("/") || subPath.includes("\0") || subPath.split("/").includes("..")) {
    throw new HostError("InvalidArgument", `${JSON.stringify(subPath)} is not a path inside a volume`);
  }
  if (deps.calls === undefined) throw new HostError("Unsupported", "mount subPath: openat2 is not available");
  try {
    // Links on the way to the volume are its owner's choice; those in it are not.
    const volume = await open(root, O_PATH | constants.O_DIRECTORY);
    try {
      const fd = await openOrMake(deps.calls, volume.fd, subPath);
      try {
        await bindDescriptor(deps, fd, target);
      } finally {
        await closeDescriptor(fd);
      }
    } finally {
      await volume.close();
    }
  } catch (error) {
    throw hostError(`mount ${JSON.stringify(subPath)} of ${root}`, error);
  }
}

/** Opens the path, made where it is missing. */
async function openOrMake(calls: SystemCalls, volume: number, subPath: string): Promise<number> {
  const parts = subPath.split("/").filter((part) => part !== "" && part !== ".");
  const whole = parts.join("/") || ".";
  const found = await openPath(calls, volume, whole);
  if (found !== undefined) return found;
  const { mode } = await statDescriptor(volume);
  let parent = await openPath(calls, volume, ".");
  for (const [index, name] of parts.entries()) {
    if (parent === undefined) break;
    const above: number = parent;
    try {
      parent = await openOrMakeChild(
        calls,
        { volume, parent: above, path: parts.slice(0, index + 1).join("/"), name },
        mode,
      );
    } catch (error) {
      await closeDescriptor(above);
      throw error;
    }
  }
  if (parent === undefined) throw new HostError("Busy", `${whole} changed while it was created`);
  return parent;
}

interface Child {
  readonly volume: number;
  readonly parent: number;
  /** From the volume. */
  readonly path: string;
  readonly name: string;
}

/** Closes the parent when it succeeds. */
async function openOrMakeChild(calls: SystemCalls, child: Child, mode: number): Promise<number | undefined> {
  const { volume, parent, path, name } = child;
  let fd = await openPath(calls, volume, path);
  if (fd === undefined) {
    // The parent is a directory inside the volume by its descriptor; mkdir does not follow a link at its end.
    const made = await mkdirIn(parent, name);
    fd = await openPath(calls, volume, path);
    // Only what was made here gets the mode, and by its descriptor: the umask cut it.
    if (made && fd !== undefined && (await statDescriptor(fd)).isDirectory())
      await chmod(`/proc/self/fd/${fd}`, mode & 0o7777);
  }
  await closeDescriptor(parent);
  return fd;
}

async function mkdirIn(parent: number, name: string): Promise<boolean> {
  try {
    await mkdir(`/proc/self/fd/${parent}/${name}`, { mode: 0o700 });
    return true;
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    return false;
  }
}

/** Undefined if nothing is there. */
async function openPath(calls: SystemCalls, volume: number, path: string): Promise<number | undefined> {
  try {
    return await openInside(calls, volume, path);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    if (errnoOf(error) !== "EXDEV") throw error;
    throw new HostError("InvalidArgument", `${JSON.stringify(path)} leads out of the volume`);
  }
}

async function bindDescriptor(deps: SubPathDeps, fd: number, target: string): Promise<void> {
  const wanted = await statDescriptor(fd);
  for (let layers = 0; mountAt(target) !== undefined && layers < 8; layers++) {
    const there = await stat(target);
    if (there.ino === wanted.ino && there.dev === wanted.dev) return;
    await deps.unmount(target);
  }
  await makeTarget(target, wanted.isDirectory());
  await deps.bind(`/proc/self/fd/${fd}`, target);
}

/** An empty directory or file to mount on; one of the other kind, of an earlier life, is replaced. */
async function makeTarget(target: string, isDirectory: boolean): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o750 });
  const there = await lstat(target).catch(() => undefined);
  if (there !== undefined && there.isDirectory() !== isDirectory) {
    await (there.isDirectory() ? rmdir(target) : unlink(target));
  } else if (there !== undefined) return;
  if (isDirectory) await mkdir(target, { mode: 0o750 });
  else await writeFile(target, "", { mode: 0o640, flag: "wx" });
}
