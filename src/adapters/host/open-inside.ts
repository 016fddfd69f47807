import { close, constants, fstat, type Stats } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import { errnoOf } from "../../lib/errors.ts";
import { HostError } from "./host-error.ts";
import type { SystemCalls } from "./system-calls.ts";

/** Not among Node's constants. */
export const O_PATH = 0o10000000;
/** openat2 fails with EAGAIN if a directory on the way is renamed meanwhile; who does so all the time gets the error. */
const ATTEMPTS = 16;

/** Stats of an open descriptor. */
export const statDescriptor: (fd: number) => Promise<Stats> = promisify(fstat);
export const closeDescriptor: (fd: number) => Promise<void> = promisify(close);

/**
 * Opens a path below the directory `root` as an O_PATH descriptor. Links are followed as long as they stay below the
 * root, whoever swaps them meanwhile. Rejects with EXDEV if the path leads outside. The caller closes the descriptor.
 */
export async function openInside(calls: SystemCalls, root: number, path: string): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await calls.openInside(root, Buffer.from(path));
    } catch (error) {
      if (errnoOf(error) !== "EAGAIN" || attempt === ATTEMPTS) throw error;
    }
  }
}

/**
 * Opens the regular file that an O_PATH descriptor names for reading. Anything else is refused before it is opened: a
 * FIFO blocks a thread of the pool until it has a writer, and opening a device can have effects.
 */
export async function openRegularFile(fd: number, name: string): Promise<FileHandle> {
  if (!(await statDescriptor(fd)).isFile()) throw notRegular(name);
  return open(`/proc/self/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
}

/** The error for a path that must be a regular file. */
export function notRegular(name: string): HostError {
  return new HostError("InvalidArgument", `open ${name}: not a regular file`);
}
