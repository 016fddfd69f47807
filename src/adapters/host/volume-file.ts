import { close, constants } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { errnoOf } from "../../lib/errors.ts";
import { HostError, hostError } from "./host-error.ts";
import { SystemCalls } from "./system-calls.ts";

/** Opens a directory only to begin at it. */
const O_PATH = 0o10000000;
/** Something on the way is renamed again and again: then it is given up. */
const ATTEMPTS = 16;

/**
 * The text of a plain file inside a volume; undefined when it does not exist. The kernel resolves the path below the
 * volume, so no link leads outside; whatever is no file (a pipe would wait for its writer) is an error.
 */
export async function readVolumeFile(root: string, path: string, maxBytes: number): Promise<string | undefined> {
  if (path === "" || path.startsWith("/") || path.includes("\0") || path.split("/").includes("..")) {
    throw new HostError("InvalidArgument", `${JSON.stringify(path)} is no path inside a volume`);
  }
  const calls = await SystemCalls.load();
  if (calls === undefined) throw new HostError("Unsupported", "openat2 cannot be called here");
  const volume = await open(root, O_PATH | constants.O_DIRECTORY);
  try {
    const fd = await openInside(calls, volume.fd, path);
    try {
      return await readDescriptor(fd, path, maxBytes);
    } finally {
      await promisify(close)(fd);
    }
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
    throw hostError(`read ${JSON.stringify(path)} in a volume`, error);
  } finally {
    await volume.close();
  }
}

async function openInside(calls: SystemCalls, volume: number, path: string): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await calls.openInside(volume, Buffer.from(path));
    } catch (error) {
      if (errnoOf(error) !== "EAGAIN" || attempt === ATTEMPTS) throw error;
    }
  }
}

/** Reads what a descriptor names: looked at before it is opened for reading, and never waited for. */
async function readDescriptor(fd: number, path: string, maxBytes: number): Promise<string> {
  const named = await open(`/proc/self/fd/${fd}`, O_PATH);
  try {
    if (!(await named.stat()).isFile()) throw new HostError("InvalidArgument", `${JSON.stringify(path)} is no file`);
  } finally {
    await named.close();
  }
  const file = await open(`/proc/self/fd/${fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const buffer = Buffer.alloc(maxBytes + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
      length += bytesRead;
      if (bytesRead === 0 || length === buffer.length) break;
    }
    if (length > maxBytes) {
      throw new HostError("InvalidArgument", `${JSON.stringify(path)} is longer than ${maxBytes} bytes`);
    }
    return buffer.toString("utf8", 0, length);
  } finally {
    await file.close();
  }
}
