import { constants, existsSync, readFileSync } from "node:fs";
import { chmod, lstat, mkdir, open, readdir, readlink, stat, symlink, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { errnoOf } from "../../lib/errors.ts";
import { notRegular } from "./open-inside.ts";
import type { PathKind } from "./path-kind.ts";
import { readVolumeFile } from "./volume-file.ts";

/** What pods' files need of the machine beyond plain files. */
export interface PodHostDeps {
  removeTree(path: string): Promise<void>;
  mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void>;
  unmount(path: string): Promise<void>;
  isMountPoint(path: string): boolean;
  /** What is at a path that a user chose; it may hang, so it is asked in a child process with a time limit. */
  kindOf(path: string, options: Abortable): Promise<PathKind | undefined>;
}

/** Files of pods and volumes on this machine, in the words of those who need them. */
export class PodHost {
  constructor(private readonly deps: PodHostDeps) {}

  /**
   * With its parents, which others may not write to. The mode is set whatever the umask is, but only on a directory
   * that this makes: a user may have changed the mode of one that was there.
   */
  async makeDir(path: string, mode: number): Promise<void> {
    // Mode 0 means "not finished": if the agent dies before the chmod, the next one finds it and goes on here.
    const first = isMasked(mode) ? 0 : mode;
    try {
      await withParents(path, mode & ~0o022, () => mkdir(path, { mode: first }));
      if (first === mode) return;
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
      const found = await stat(path);
      if (!found.isDirectory()) throw error;
      if ((found.mode & 0o7777) !== 0) return;
    }
    await chmod(path, mode);
  }

  async writeFile(path: string, text: string, mode: number): Promise<void> {
    const file = await withParents(path, 0o750, () => open(path, "w", mode));
    try {
      await Promise.all([text !== "" && file.writeFile(text), isMasked(mode) && file.chmod(mode)]);
    } finally {
      await file.close();
    }
  }

  /** Atomic, and synced to the disk. */
  async replaceFile(path: string, text: string): Promise<void> {
    await withParents(path, 0o750, () => writeAtomic(path, text));
  }

  async makeFile(path: string, mode: number): Promise<void> {
    const file = await open(path, "a", mode);
    await file.close();
  }

  /** Only of a regular file: a pod may have put a link to any file of the host in the place of its log. */
  async readTail(path: string, bytes: number): Promise<string> {
    // Mostly it is empty, and needs not be opened.
    const found = await orMissing(lstat(path));
    if (found === undefined || (found.isFile() && found.size === 0)) return "";
    if (!found.isFile()) throw notRegular(path);
    const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
    const file = await orMissing(open(path, flags));
    if (file === undefined) return "";
    try {
      const opened = await file.stat();
      if (!opened.isFile()) throw notRegular(path);
      const { size } = opened;
      const buffer = Buffer.alloc(Math.min(size, bytes));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, size - buffer.length);
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  }

  /** A plain file at a path that a user chose inside a volume; undefined when it does not exist. */
  readInside(root: string, path: string, maxBytes: number): Promise<string | undefined> {
    return readVolumeFile(root, path, maxBytes);
  }

  /** Only for small files of the system, never for a path that a user or a volume can choose. */
  readSmall(path: string): string {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return "";
      throw error;
    }
  }

  /** Only for paths of the system, as above. */
  exists(path: string): boolean {
    return existsSync(path);
  }

  async list(path: string): Promise<readonly string[]> {
    return (await orMissing(readdir(path))) ?? [];
  }

  async symlink(target: string, path: string): Promise<void> {
    try {
      await withParents(path, 0o755, () => symlink(target, path));
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
      await this.removeFile(path);
      await symlink(target, path);
    }
  }

  /** Where a link points to; undefined when there is no link. */
  async readLink(path: string): Promise<string | undefined> {
    try {
      return await readlink(path);
    } catch (error) {
      if (["ENOENT", "EINVAL"].includes(errnoOf(error) ?? "")) return undefined;
      throw error;
    }
  }

  async removeFile(path: string): Promise<void> {
    await orMissing(unlink(path));
  }

  async removeTree(path: string): Promise<void> {
    if ((await orMissing(lstat(path))) !== undefined) await this.deps.removeTree(path);
  }

  mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void> {
    return this.deps.mountTmpfs(path, options);
  }

  unmount(path: string): Promise<void> {
    return this.deps.unmount(path);
  }

  isMountPoint(path: string): Promise<boolean> {
    return Promise.resolve(this.deps.isMountPoint(path));
  }

  kindOf(path: string, options: Abortable): Promise<PathKind | undefined> {
    return this.deps.kindOf(path, options);
  }
}

/** Whether the umask takes something away from this mode, so that it must be set once more. */
function isMasked(mode: number): boolean {
  return (mode & process.umask()) !== 0;
}

/** Makes the parents only when it turns out that they are missing: mostly they are there. */
async function withParents<T>(path: string, mode: number, make: () => Promise<T>): Promise<T> {
  try {
    return await make();
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    await mkdir(dirname(path), { recursive: true, mode });
    return make();
  }
}

async function orMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}
