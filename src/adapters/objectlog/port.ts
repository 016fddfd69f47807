import { CodedError } from "../../lib/errors.ts";

/** One object as it is now: `value` is its JSON text, undefined if it was deleted. */
export interface LogWrite {
  readonly key: string;
  readonly revision: number;
  readonly value: string | undefined;
  /** Encrypted on disk. */
  readonly isSecret?: boolean;
}

/** What was on disk when a log was opened. */
export interface LoadedObjects {
  /** The newest write of each key that is not deleted. */
  readonly objects: readonly (LogWrite & { readonly value: string })[];
  /** The newest revision that was ever written, deletions included. */
  readonly revision: number;
}

/**
 * Writes objects durably. Implemented by `FileLog` (an append-only file) and `MemoryLog` (tests). One call at a time:
 * the caller waits for an `append` before the next one.
 */
export interface ObjectLog {
  /**
   * Resolves when all writes would survive a power cut. Rejects with `LogError` if they might not: they count as not made,
   * and the next call may succeed. Only a crash before that may still keep them, all or none. Cannot be aborted.
   */
  append(writes: readonly LogWrite[]): Promise<void>;
  /** May be repeated. */
  close(): Promise<void>;
}

/**
 * `NoSpace`: the filesystem is full; `Failed`: the device or the filesystem reported an error; `Corrupt`: the file is not
 * one of ours; `NoKey`: secrets cannot be decrypted; `Closed`: the log was closed.
 */
export type LogErrorCode = "NoSpace" | "Failed" | "Corrupt" | "NoKey" | "Closed";

/** A failure of the log. The message names the file. */
export class LogError extends CodedError<LogErrorCode> {}
