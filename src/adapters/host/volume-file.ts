import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errnoOf } from "../../lib/errors.ts";
import { HostError, hostError } from "./host-error.ts";
import { closeDescriptor, O_PATH, openInside, openRegularFile } from "./open-inside.ts";
import { SystemCalls } from "./system-calls.ts";

/**
 * Returns the text of a regular file inside a volume; undefined if it does not exist. The kernel resolves the path below
 * the volume, so no link leads outside.
 */
export async function readVolumeFile(root: string, path: string, maxBytes: number): Promise<string | undefined> {
  if (path === "" || path.startsWith("/") || path.includes("\0") || path.split("/").includes("..")) {
    throw new HostError("InvalidArgument", `${JSON.stringify(path)} is not a path inside a volume`);
  }
  const calls = await SystemCalls.load();
  if (calls === undefined) throw new HostError("Unsupported", "read file in volume: openat2 is not available");
  const volume = await open(root, O_PATH | constants.O_DIRECTORY);
  try {
    const fd = await openInside(calls, volume.fd, path);
    try {
      const file = await openRegularFile(fd, JSON.stringify(path));
      return await readBounded(file, path, maxBytes);
    } finally {
      await closeDescriptor(fd);
    }
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR") return undefined;
    throw hostError(`read ${JSON.stringify(path)} in volume`, error);
  } finally {
    await volume.close();
  }
}

/** Reads the whole file and closes it. */
async function readBounded(file: FileHandle, path: string, maxBytes: number): Promise<string> {
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
