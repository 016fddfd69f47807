import { fstat, type Stats } from "node:fs";
import { chmod, chown, lchown } from "node:fs/promises";
import { promisify } from "node:util";
import type { Abortable } from "../../lib/abort.ts";
import { hostError } from "./host-error.ts";
import type { TreeAccess, TreeDirectory } from "./tree-access.ts";
import { entryPath, orGone, type WalkedEntry, walkTree } from "./tree-walk.ts";

export interface GroupChange {
  readonly gid: number;
  /** Leave everything as it is when the top has the group and its bits already. */
  readonly onlyOnMismatch: boolean;
}

export interface GroupOptions extends Partial<Abortable> {
  /** Called at intervals with the number of entries visited. */
  readonly onProgress?: (entries: number) => void;
}

const statOf: (fd: number) => Promise<Stats> = promisify(fstat);
const FILE_BITS = 0o660;
const DIRECTORY_BITS = 0o2770;
/** Entries between two reports. */
const PROGRESS_EVERY = 1000;

/**
 * Gives a volume to a group, as fsGroup asks: all below gets the group, files may be read and written by it, and what
 * is made in directories later belongs to it too. The top is changed last, so that a walk that was cut off is seen.
 * Mounts below are not entered and links are not followed, whoever swaps them meanwhile.
 */
export async function changeGroup(
  deps: { readonly access: TreeAccess },
  path: string,
  request: GroupChange & GroupOptions,
): Promise<void> {
  const { gid, onlyOnMismatch, signal, onProgress } = request;
  const top = await deps.access.openParent(path);
  try {
    const self = `/proc/self/fd/${top.fd}`;
    const stats = await statOf(top.fd);
    if (onlyOnMismatch && isDone(stats, gid)) return;
    let entries = 0;
    for await (const entry of walkTree(deps.access, top, signal === undefined ? {} : { signal })) {
      await changeEntry(deps.access, entry, gid);
      if (++entries % PROGRESS_EVERY === 0) onProgress?.(entries);
    }
    await apply(self, stats, gid);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw hostError(`change group of ${path} to ${gid}`, error);
  } finally {
    await top.close();
  }
}

async function changeEntry(access: TreeAccess, entry: WalkedEntry, gid: number): Promise<void> {
  const { directory, name, stats, opened } = entry;
  if (isDone(stats, gid)) return;
  if (stats.isSymbolicLink()) {
    await orGone(lchown(entryPath(directory, name), stats.uid, gid));
    return;
  }
  if (opened !== undefined) return apply(`/proc/self/fd/${opened.fd}`, stats, gid);
  const file: TreeDirectory | undefined = await orGone(access.openEntry(directory, name));
  if (file === undefined) return;
  try {
    const path = `/proc/self/fd/${file.fd}`;
    const now = await statOf(file.fd);
    // Replaced by a link since it was listed: its target is not ours.
    if (!now.isSymbolicLink()) await apply(path, now, gid);
  } finally {
    await file.close();
  }
}

function bitsOf(stats: Stats): number {
  if (stats.isSymbolicLink()) return 0;
  return stats.isDirectory() ? DIRECTORY_BITS : FILE_BITS;
}

function isDone(stats: Stats, gid: number): boolean {
  const bits = bitsOf(stats);
  return stats.gid === gid && (stats.mode & bits) === bits;
}

/** The path is one of an open descriptor. */
async function apply(path: string, stats: Stats, gid: number): Promise<void> {
  if (isDone(stats, gid)) return;
  if (stats.gid !== gid) await chown(path, stats.uid, gid);
  await chmod(path, (stats.mode & 0o7777) | bitsOf(stats));
}
