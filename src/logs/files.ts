import type { Abortable } from "../lib/abort.ts";

/** An open log file. */
export interface LogFile {
  /** Tells two files of one name apart (device and inode). */
  readonly identity: string;
  size(): Promise<number>;
  /** Reads up to the buffer's length; 0 at the end. */
  read(buffer: Buffer, position: number): Promise<number>;
  close(): Promise<void>;
}

/** Access to log files. */
export interface LogFiles {
  /** Undefined when it does not exist. */
  open(path: string): Promise<LogFile | undefined>;
  /** The identity of what has this name now, or undefined. */
  identity(path: string): Promise<string | undefined>;
  /** The rotated files of this name that can be read, oldest first. */
  rotated(path: string): Promise<readonly { readonly path: string; readonly identity: string }[]>;
  /** Calls back when the file may have changed, until the signal aborts. May miss changes: the reader also polls. */
  watch(path: string, onChange: () => void, options: Abortable): void;
}
