import { type FileHandle, mkdir, open, readFile, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errnoOf } from "./errors.ts";

export interface WriteAtomicOptions {
  /** Permission bits of the new file, whatever the umask; defaults to 0o600. */
  readonly mode?: number;
  /** Survive a power cut: sync the file before and the directory after the rename; defaults to true. */
  readonly sync?: boolean;
}

let sequence = 0;

/**
 * Replaces `path` as a whole: a reader sees the old content or the new, never a part. A failure (no space, no
 * permission) leaves the old file as it was and no temporary file. May be repeated.
 */
export async function writeAtomic(
  path: string,
  data: string | Uint8Array,
  options: WriteAtomicOptions = {},
): Promise<void> {
  const { mode = 0o600, sync = true } = options;
  const directory = dirname(path);
  // Hidden, so that a reader of the directory (manifests, plug-ins) passes it over.
  const temporary = join(directory, `.${basename(path)}.${process.pid}.${++sequence}.tmp`);
  let renamed = false;
  // "wx": never follow or reuse what somebody else put at that name.
  const file = await openFresh(temporary);
  try {
    try {
      await file.writeFile(data);
      await file.chmod(mode);
      if (sync) await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
    renamed = true;
  } finally {
    if (!renamed) await unlink(temporary).catch(() => undefined);
  }
  if (sync) await syncDirectory(directory);
}

/** Opens a name that only this process uses; one left by an earlier process of the same pid is removed first. */
async function openFresh(path: string): Promise<FileHandle> {
  try {
    return await open(path, "wx", 0o600);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    await unlink(path);
    return open(path, "wx", 0o600);
  }
}

/** Makes a rename or an unlink in `directory` survive a power cut. Filesystems that cannot sync a directory are fine. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } catch (error) {
    if (errnoOf(error) !== "EINVAL") throw error;
  } finally {
    await handle.close();
  }
}

/** Returns the content of a file, or undefined if it does not exist. Throws other errors. */
export async function readIfExists(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Makes a directory and those above it; succeeds if it exists. */
export async function makeDirectory(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true, mode });
}

/** Removes a file; succeeds if it does not exist. */
export async function removeIfExists(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
  }
}
