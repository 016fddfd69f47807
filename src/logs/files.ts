import type { Abortable } from "../lib/abort.ts";

/** An open log file. */
export interface LogFile {
  /** Tells two files of one name apart (device and inode). */
  readonly identity: string;
  size(): Promise<number>;
  /** Reads up to the buffer's length; 0 at the end. */
  read(buffer: Buffer, position: number): Promise<number>;
  /** Prepares reading backwards, until `release`; missing where that needs nothing. */
  hold?(): Promise<void>;
  release?(): void;
  close(): Promise<void>;
}

/** Access to log files. */
export interface LogFiles {
  /** Undefined when it does not exist. A name that ends in `.gz` is read decompressed. */
  open(path: string): Promise<LogFile | undefined>;
  /** The identity of what has this name now, or undefined. */
  identity(path: string): Promise<string | undefined>;
  /** Names in a directory; empty if there is none. */
  names(directory: string): Promise<readonly string[]>;
  /** Wall-clock milliseconds of the last write; undefined if there is no such file. */
  modifiedAt(path: string): Promise<number | undefined>;
  /** Calls back when the file may have changed, until the signal aborts. May miss changes: the reader also polls. */
  watch(path: string, onChange: () => void, options: Abortable): void;
}
