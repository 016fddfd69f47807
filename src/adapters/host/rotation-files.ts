import { constants, watch } from "node:fs";
import { type FileHandle, link, lstat, open, readdir, rename, unlink } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Abortable } from "../../lib/abort.ts";
import { errnoOf } from "../../lib/errors.ts";

/** Bytes per read and write of a compression; the compression itself runs in the thread pool. */
const CHUNK = 256 * 1024;
/** Fast rather than small: logs shrink to a tenth at this level, too. */
const LEVEL = 3;

/** The host's files for `LogRotator`. Paths come from the runtime, never from a user. */
export const rotationFiles = {
  async size(path: string): Promise<number | undefined> {
    const found = await orMissing(lstat(path));
    if (found === undefined) return undefined;
    // A link is the log of another writer, such as dockerd: it is not missing, and not to be rotated either.
    return found.isFile() ? found.size : 0;
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
        const gzip = createGzip({ level: LEVEL, chunkSize: CHUNK });
        await pipeline(chunksOf(source), gzip, (packed: AsyncIterable<Buffer>) => writeAll(target, packed), { signal });
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

async function* chunksOf(file: FileHandle): AsyncGenerator<Buffer> {
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

async function writeAll(file: FileHandle, chunks: AsyncIterable<Buffer>): Promise<void> {
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
  }
}

/** Creates a file for writing in place of what has its name: a pod may have put a pipe there, and opening one waits. */
async function createNew(path: string, mode: number): Promise<FileHandle> {
  await orMissing(unlink(path));
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK, mode);
}

/** Opens a regular file for reading; never waits, as opening a pipe would. */
async function openRegular(path: string): Promise<FileHandle | undefined> {
  const handle = await orMissing(open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW));
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
