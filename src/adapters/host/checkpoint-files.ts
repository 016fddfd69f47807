import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { errnoOf } from "../../lib/errors.ts";
import { removeTemporaryFiles } from "./temporary-files.ts";

/** Bytes of the largest checkpoint that is read: far more than thousands of containers need. */
const MOST_BYTES = 16 * 1024 * 1024;

/** The checkpoints of allocations in the agent's directory, in Kubernetes' formats. */
export const checkpointFiles = {
  /** Undefined if there is none. Synchronous: it is read once, at the start. Throws for what is not a small file. */
  read(path: string): string | undefined {
    removeTemporaryFiles(path);
    let fd: number;
    try {
      fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      throw error;
    }
    try {
      const stats = fstatSync(fd);
      if (!stats.isFile() || stats.size > MOST_BYTES) throw new Error("checkpoint is corrupted");
      return readFileSync(fd, "utf8");
    } finally {
      closeSync(fd);
    }
  },

  /** Atomic, and synced to the disk. */
  replace(path: string, text: string): Promise<void> {
    return writeAtomic(path, text);
  },
} as const;
