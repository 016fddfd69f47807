import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import type { Abortable } from "../../lib/abort.ts";
import { errnoOf } from "../../lib/errors.ts";

/** What a path leads to; `stamp` changes with the file's identity, size and times. */
interface Facts {
  readonly kind: "file" | "directory" | "other";
  readonly size: number;
  readonly stamp: string;
  /** True if somebody may execute it. */
  readonly isExecutable: boolean;
}

/** The host's files as the file source of static pods reads them (`ManifestFiles` of src/sources). */
export const manifestFiles = {
  async stat(path: string, { signal }: Abortable): Promise<Facts | undefined> {
    signal.throwIfAborted();
    try {
      const found = await stat(path, { bigint: true });
      const kind = found.isFile() ? "file" : found.isDirectory() ? "directory" : "other";
      const stamp = [found.dev, found.ino, found.size, found.mtimeNs, found.ctimeNs].join(":");
      return { kind, size: Number(found.size), stamp, isExecutable: (found.mode & 0o111n) !== 0n };
    } catch (error) {
      const code = errnoOf(error);
      if (code === "ENOENT" || code === "ENOTDIR") return undefined;
      throw error;
    }
  },

  async list(path: string, { signal }: Abortable): Promise<readonly string[]> {
    signal.throwIfAborted();
    return readdir(path);
  },

  /** Opens without waiting, so that a pipe put in the file's place cannot hold the agent. */
  async read(path: string, { signal, maxBytes }: Abortable & { maxBytes: number }): Promise<string> {
    signal.throwIfAborted();
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) throw new Error("is not a regular file");
      const chunks: Buffer[] = [];
      let total = 0;
      for (;;) {
        signal.throwIfAborted();
        const { bytesRead, buffer } = await file.read(Buffer.alloc(64 * 1024));
        if (bytesRead === 0) break;
        total += bytesRead;
        if (total > maxBytes) throw new Error(`has more than ${maxBytes} bytes`);
        chunks.push(buffer.subarray(0, bytesRead));
      }
      return Buffer.concat(chunks).toString("utf8");
    } finally {
      await file.close();
    }
  },
};
