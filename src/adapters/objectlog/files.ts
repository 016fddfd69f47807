import { type FileHandle, open, readFile, rename } from "node:fs/promises";
import { removeIfExists, syncDirectory, writeAtomic } from "../../lib/atomic-file.ts";
import { errnoOf } from "../../lib/errors.ts";

/** An open file of the log. */
export interface LogFile {
  /** Writes all bytes at this place. */
  write(bytes: Buffer, at: number): Promise<void>;
  /** Up to `length` bytes from this place; fewer only at the end. */
  read(at: number, length: number): Promise<Buffer>;
  truncate(length: number): Promise<void>;
  /** Resolves when what was written would survive a power cut. */
  sync(): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

/** The filesystem as the log needs it; tests give one that fails or loses power. */
export interface LogFiles {
  /** Opens a file for reading and writing; an empty one is made if it is missing. */
  open(path: string): Promise<LogFile>;
  /** Replaces `to` by `from`. */
  rename(from: string, to: string): Promise<void>;
  /** Makes a rename or a new file survive a power cut. */
  syncDirectory(directory: string): Promise<void>;
  /** Succeeds if there is no such file. */
  remove(path: string): Promise<void>;
  /** The content of a small file; undefined if there is none. */
  readSmall(path: string): Promise<Buffer | undefined>;
  /** Writes a small file that only its owner can read, as a whole, and durably. */
  writeSmall(path: string, bytes: Buffer): Promise<void>;
}

/** The machine's filesystem. */
export const hostLogFiles: LogFiles = {
  open: async (path) => new HostLogFile(await openOrMake(path)),
  rename,
  syncDirectory,
  remove: removeIfExists,
  writeSmall: writeAtomic,
  async readSmall(path) {
    try {
      return await readFile(path);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
  },
};

async function openOrMake(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r+");
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    return open(path, "wx+", 0o600);
  }
}

class HostLogFile implements LogFile {
  constructor(private readonly file: FileHandle) {}

  async write(bytes: Buffer, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      const { bytesWritten } = await this.file.write(bytes, done, bytes.length - done, at + done);
      done += bytesWritten;
    }
  }

  async read(at: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length);
    let done = 0;
    while (done < length) {
      const { bytesRead } = await this.file.read(bytes, done, length - done, at + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return bytes.subarray(0, done);
  }

  truncate(length: number): Promise<void> {
    return this.file.truncate(length);
  }

  sync(): Promise<void> {
    return this.file.datasync();
  }

  async size(): Promise<number> {
    return (await this.file.stat()).size;
  }

  close(): Promise<void> {
    return this.file.close();
  }
}
