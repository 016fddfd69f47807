import { constants, watch } from "node:fs";
import { type FileHandle, lstat, open, readdir } from "node:fs/promises";
import { dirname } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { errnoOf } from "../../lib/errors.ts";
import { CompressedLogFile } from "./compressed-log-file.ts";
import { notRegular } from "./open-inside.ts";

/** The host's log files, for `src/logs`. Only for paths that the runtime writes, never one that a user chose. */
export const hostLogFiles = {
  /**
   * Rejects what is not a regular file. A pod that can write to the log directory may put a link to any file of the
   * host there, or a FIFO: opened without O_NONBLOCK it would hold a thread of the pool until it has a writer.
   */
  async open(path: string): Promise<HostLogFile | CompressedLogFile | undefined> {
    try {
      const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
      try {
        const stats = await handle.stat();
        if (!stats.isFile()) throw notRegular(path);
        const identity = `${stats.dev}:${stats.ino}`;
        return path.endsWith(".gz") ? new CompressedLogFile(handle, identity) : new HostLogFile(handle, identity);
      } catch (error) {
        await handle.close();
        throw error;
      }
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw errnoOf(error) === "ELOOP" ? notRegular(path) : error;
    }
  },

  async identity(path: string): Promise<string | undefined> {
    try {
      const { dev, ino } = await lstat(path);
      return `${dev}:${ino}`;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
  },

  async names(directory: string): Promise<readonly string[]> {
    return readdir(directory).catch(() => []);
  },

  async modifiedAt(path: string): Promise<number | undefined> {
    return (await lstat(path).catch(() => undefined))?.mtimeMs;
  },

  /** Watches the directory: a watch on the file itself would stay with the old one after a rotation. */
  watch(path: string, onChange: () => void, { signal }: Abortable): void {
    if (signal.aborted) return;
    try {
      const watcher = watch(dirname(path), { persistent: false }, () => onChange());
      watcher.on("error", () => watcher.close());
      signal.addEventListener("abort", () => watcher.close(), { once: true });
    } catch {
      // No watches left, or no directory yet: the reader looks by itself every second.
    }
  },
};

class HostLogFile {
  constructor(
    private readonly handle: FileHandle,
    readonly identity: string,
  ) {}

  async size(): Promise<number> {
    return (await this.handle.stat()).size;
  }

  async read(buffer: Buffer, position: number): Promise<number> {
    return (await this.handle.read(buffer, 0, buffer.length, position)).bytesRead;
  }

  async close(): Promise<void> {
    await this.handle.close();
  }
}
