import { constants, fstatSync, watch } from "node:fs";
import { type FileHandle, link, lstat, open, readdir, rename, statfs, unlink } from "node:fs/promises";
import type { Abortable } from "../../lib/abort.ts";
import { errnoOf } from "../../lib/errors.ts";
import { gzipFile } from "./gzip-file.ts";

/** Filesystems that answer from memory what an open file is like: ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS. */
const LOCAL: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x9123683e, 0x01021994, 0xf2f52010, 0x2fc12fc1]);

/** The host's files for `LogRotator`. Paths come from the runtime, never from a user. */
export const rotationFiles = {
  async size(path: string): Promise<number | undefined> {
    const found = await orMissing(lstat(path));
    if (found === undefined) return undefined;
    // A link is the log of another writer, such as dockerd: it is not missing, and not to be rotated either.
    return found.isFile() ? found.size : 0;
  },

  async open(path: string): Promise<{ size(): number | undefined; close(): void } | undefined> {
    // What cannot be opened, such as a link, is measured by its path.
    const handle = await openWithoutWaiting(path).catch(() => undefined);
    if (handle === undefined) return undefined;
    const close = (): void => void handle.close().catch(() => undefined);
    try {
      const { type } = await statfs(`/proc/self/fd/${handle.fd}`);
      if (LOCAL.has(type) && fstatSync(handle.fd).isFile()) {
        const size = (): number | undefined => {
          const found = fstatSync(handle.fd);
          return found.nlink === 0 ? undefined : found.size;
        };
        return { size, close };
      }
    } catch {
      // Without /proc.
    }
    close();
    return undefined;
  },

  async names(directory: string): Promise<readonly string[]> {
    return (await orMissing(readdir(directory))) ?? [];
  },

  rename(from: string, to: string): Promise<void> {
    return rename(from, to);
  },

  async restore(from: string, to: string): Promise<void> {
    try {
      await link(from, to);
    } catch (error) {
      if (errnoOf(error) === "EEXIST") return;
      throw error;
    }
    await unlink(from);
  },

  async remove(path: string): Promise<void> {
    await orMissing(unlink(path));
  },

  async compress(path: string, to: string, { signal }: Abortable): Promise<void> {
    const source = await openRegular(path);
    if (source === undefined) return;
    const temporary = `${to}.tmp`;
    try {
      const { mode, atime, mtime } = await source.stat();
      const target = await createNew(temporary, mode & 0o777);
      try {
        await gzipFile(source, target, { signal });
        await target.utimes(atime, mtime);
        // The plain file goes next: a power cut must not take both.
        await target.sync();
      } finally {
        await target.close();
      }
      await rename(temporary, to);
      await orMissing(unlink(path));
    } catch (error) {
      await orMissing(unlink(temporary));
      throw error;
    } finally {
      await source.close();
    }
  },

  onceWritten(path: string, callback: () => void): () => void {
    const watcher = watch(path, { persistent: false });
    const end = (): void => {
      watcher.removeAllListeners();
      watcher.on("error", () => undefined);
      watcher.close();
    };
    const once = (): void => {
      end();
      callback();
    };
    watcher.on("change", once);
    watcher.on("error", once);
    return end;
  },
};

/** Creates a file for writing in place of what has its name: a pod may have put a pipe there, and opening one waits. */
async function createNew(path: string, mode: number): Promise<FileHandle> {
  await orMissing(unlink(path));
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK, mode);
}

/** Opens for reading what is no link; never waits, as opening a pipe would. */
function openWithoutWaiting(path: string): Promise<FileHandle | undefined> {
  return orMissing(open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW));
}

async function openRegular(path: string): Promise<FileHandle | undefined> {
  const handle = await openWithoutWaiting(path);
  if (handle === undefined || (await handle.stat()).isFile()) return handle;
  await handle.close();
  return undefined;
}

async function orMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
