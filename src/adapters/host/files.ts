import { readFileSync, type Stats } from "node:fs";
import { access, chmod, chown, lstat, mkdir, readdir, rename, symlink } from "node:fs/promises";
import { errnoOf } from "../../lib/errors.ts";
import { hostError } from "./host-error.ts";

/** What is at a path itself: a link is not followed. */
export interface FileInfo {
  readonly kind: "file" | "directory" | "link" | "other";
  readonly size: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** Wall-clock milliseconds. */
  readonly modifiedAt: number;
}

/** Plain files of the agent's own directories. Failures are `HostError`s. */
export const files = {
  /** Makes a directory and its parents; one that it made gets exactly this mode, one that was there keeps its own. */
  async makeDir(path: string, mode: number): Promise<void> {
    await named(`make directory ${path}`, async () => {
      const first = await mkdir(path, { recursive: true, mode });
      if (first !== undefined) await chmod(path, mode);
    });
  },

  /** A small file of /proc, /sys or the agent's own, at once; undefined when there is none. Never a user's path. */
  readSmall(path: string): string | undefined {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw hostError(`read ${path}`, error);
    }
  },

  /** Makes or replaces a link, so that there is no moment without one. */
  async symlink(target: string, path: string): Promise<void> {
    await named(`link ${path}`, async () => {
      const temporary = `${path}.${process.pid}.tmp`;
      try {
        await symlink(target, path);
      } catch (error) {
        if (errnoOf(error) !== "EEXIST") throw error;
        await symlink(target, temporary);
        await rename(temporary, path);
      }
    });
  },

  async exists(path: string): Promise<boolean> {
    return access(path).then(
      () => true,
      () => false,
    );
  },

  /** Undefined when nothing is there. */
  async stat(path: string): Promise<FileInfo | undefined> {
    try {
      return describe(await lstat(path));
    } catch (error) {
      if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
      throw hostError(`stat ${path}`, error);
    }
  },

  /** Names in a directory; none when there is no such directory. */
  async list(path: string): Promise<readonly string[]> {
    try {
      return await readdir(path);
    } catch (error) {
      if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return [];
      throw hostError(`list ${path}`, error);
    }
  },

  rename(from: string, to: string): Promise<void> {
    return named(`rename ${from} to ${to}`, () => rename(from, to));
  },

  chmod(path: string, mode: number): Promise<void> {
    return named(`change the mode of ${path}`, () => chmod(path, mode));
  },

  chown(path: string, owner: { uid: number; gid: number }): Promise<void> {
    return named(`change the owner of ${path}`, () => chown(path, owner.uid, owner.gid));
  },
};

async function named<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw hostError(what, error);
  }
}

function describe(stat: Stats): FileInfo {
  const kind = stat.isFile() ? "file" : stat.isDirectory() ? "directory" : stat.isSymbolicLink() ? "link" : "other";
  const { size, uid, gid, mtimeMs } = stat;
  return { kind, size, mode: stat.mode & 0o7777, uid, gid, modifiedAt: mtimeMs };
}
