import type { Abortable } from "../../lib/abort.ts";
import { planRecovery, planRotation, type RotationFacts } from "./plan-rotation.ts";

/** A log that is kept open to be measured. */
export interface OpenLog {
  /** Undefined once the file was removed. Returns at once. */
  size(): number | undefined;
  close(): void;
}

/** The files of container logs, as rotation needs them. */
export interface RotationFiles {
  /** Size of a regular file, 0 for anything else; undefined if there is nothing at this path. */
  size(path: string): Promise<number | undefined>;
  /** Undefined for what is not a regular file on a local filesystem: measuring it could take time. Never rejects. */
  open(path: string): Promise<OpenLog | undefined>;
  /** Names in the directory of a log; empty if it does not exist. */
  names(directory: string): Promise<readonly string[]>;
  /** Within a directory; the new name is free. */
  rename(from: string, to: string): Promise<void>;
  /** Gives a file its old name back, unless another file has that name by now. */
  restore(from: string, to: string): Promise<void>;
  /** Does nothing if the file does not exist. */
  remove(path: string): Promise<void>;
  /** Writes a compressed copy to `to.tmp`, renames that to `to`, and removes the plain file. Does nothing without one. */
  compress(path: string, to: string, options: Abortable): Promise<void>;
  /** Calls back once, when the file is written to. Throws if it cannot be watched. Returns a function that ends the watch. */
  onceWritten(path: string, callback: () => void): () => void;
}

export interface RotateDeps {
  readonly files: RotationFiles;
  readonly runtime: { reopenContainerLog(id: string, options: Abortable): Promise<void> };
  /** Wall-clock milliseconds. */
  now(): number;
}

/** One log of a running container. */
export interface ContainerLog {
  readonly id: string;
  readonly directory: string;
  readonly base: string;
}

/**
 * Rotates a log: removes the oldest, renames the current file, lets the runtime open a new one. Returns the names of the
 * files to compress. If the runtime does not reopen the log, the current file gets its name back.
 */
export async function rotate(
  deps: RotateDeps,
  { log, ...limits }: { log: ContainerLog } & Pick<RotationFacts, "isBusy" | "maxFiles">,
  options: Abortable,
): Promise<readonly string[]> {
  const { files } = deps;
  const facts = { base: log.base, names: await files.names(log.directory), ...limits };
  const plan = planRotation(facts, new Date(deps.now()));
  for (const name of plan.remove) await files.remove(`${log.directory}/${name}`);
  const current = `${log.directory}/${log.base}`;
  const rotated = `${log.directory}/${plan.rotateTo}`;
  await files.rename(current, rotated);
  try {
    await deps.runtime.reopenContainerLog(log.id, options);
  } catch (error) {
    // The runtime may have created a new file although it reported an error.
    await files.restore(rotated, current);
    throw error;
  }
  return plan.compress;
}

/** Removes what an interrupted rotation left. Returns the names of the files to compress. */
export async function recover(
  { files }: RotateDeps,
  { log, ...limits }: { log: ContainerLog } & Pick<RotationFacts, "isBusy" | "maxFiles">,
): Promise<readonly string[]> {
  const plan = planRecovery({ base: log.base, names: await files.names(log.directory), ...limits });
  for (const name of plan.remove) await files.remove(`${log.directory}/${name}`);
  return plan.compress;
}
