import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync } from "node:fs";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { errnoOf, messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { removeTemporaryFiles } from "./temporary-files.ts";

/** Where a damaged state file is moved. */
const ASIDE = ".corrupt";
/** Bytes of the largest state file that is read: far more than most parts of the agent write. */
const MOST_BYTES = 64 * 1024;

/** A small JSON file that outlives the agent. One that is damaged is moved aside with a warning, and counts as missing. */
export class StateFile<T> {
  /** Why the last `load` could not read the file; undefined if it could, or if there is none. */
  unreadable: string | undefined;

  constructor(
    private readonly deps: {
      readonly path: string;
      readonly log: Pick<Logger, "warn">;
      /** A larger file counts as damaged; 64 KiB by default. */
      readonly mostBytes?: number;
      /** Permissions of the file, 0644 by default. */
      readonly mode?: number;
    },
    /** Returns undefined for a document of another shape. */
    private readonly decode: (document: unknown) => T | undefined,
  ) {}

  /** Undefined if there is none, or none that can be read. Synchronous: it is small, and read once. Never throws. */
  load(): T | undefined {
    const { path, log } = this.deps;
    this.unreadable = undefined;
    removeTemporaryFiles(path);
    try {
      const found = this.decode(parsed(readRegular(path, this.deps.mostBytes ?? MOST_BYTES)));
      if (found !== undefined) return found;
      renameSync(path, `${path}${ASIDE}`);
      log.warn("Moved damaged state file aside", { path: `${path}${ASIDE}` });
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return undefined;
      this.unreadable = messageOf(error);
      log.warn("Failed to read state file", { path, error: this.unreadable });
    }
    return undefined;
  }

  /** Replaces the file as a whole. Rejects if it is so large that it would count as damaged: the one of before stays. */
  async save(state: T): Promise<void> {
    const { path, mostBytes = MOST_BYTES, mode = 0o644 } = this.deps;
    const text = `${JSON.stringify(state)}\n`;
    const bytes = Buffer.byteLength(text);
    if (bytes > mostBytes) throw new Error(`state file ${path} would have ${bytes} bytes, more than ${mostBytes}`);
    await writeAtomic(path, text, { mode });
  }
}

/** The text of a file; empty if it is too large, or not a regular file: a pipe would never end. */
function readRegular(path: string, mostBytes: number): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd);
    return stats.isFile() && stats.size <= mostBytes ? readFileSync(fd, "utf8") : "";
  } finally {
    closeSync(fd);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
