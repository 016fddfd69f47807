import { fstat, type Stats } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { promisify } from "node:util";
import type { Abortable } from "../../lib/abort.ts";
import { errnoOf } from "../../lib/errors.ts";
import type { TreeAccess, TreeDirectory } from "./tree-access.ts";

const statOf: (fd: number) => Promise<Stats> = promisify(fstat);

/** One entry of a tree. Reach it through `directory` only: paths may change under a walk. */
export interface WalkedEntry {
  readonly directory: TreeDirectory;
  readonly name: Buffer;
  readonly stats: Stats;
  /** The entry itself, open, if it is a directory. */
  readonly opened?: TreeDirectory;
}

/**
 * Everything below an open directory, each directory before its content. Nothing that is mounted below is entered or
 * told, links are told and not followed, and what goes away meanwhile is left out. It takes one descriptor a level.
 */
export async function* walkTree(
  access: TreeAccess,
  directory: TreeDirectory,
  options: Partial<Abortable> = {},
): AsyncGenerator<WalkedEntry, void, undefined> {
  const listing = await opendir(`/proc/self/fd/${directory.fd}`, {
    encoding: "buffer" as BufferEncoding,
    bufferSize: 512,
  });
  for await (const entry of listing) {
    options.signal?.throwIfAborted();
    // Asked for as bytes; the type of Node's declaration says text.
    const name = Buffer.from(entry.name as unknown as Uint8Array);
    // Opened before it is looked at: what somebody mounted there is not ours to ask, and may never answer.
    let opened = entry.isDirectory() ? await orGone(access.openChild(directory, name)) : undefined;
    if (opened === undefined && entry.isDirectory()) continue;
    const stats = await (opened === undefined ? orGone(lstat(entryPath(directory, name))) : statOf(opened.fd));
    if (stats === undefined) continue;
    if (!stats.isDirectory()) {
      yield { directory, name, stats };
      continue;
    }
    // A filesystem that does not tell kinds, or a directory in the place of something else.
    opened ??= await orGone(access.openChild(directory, name));
    if (opened === undefined) continue;
    try {
      yield { directory, name, stats, opened };
      yield* walkTree(access, opened, options);
    } finally {
      await opened.close();
    }
  }
}

/** A path that begins at exactly that open directory. */
export function entryPath(directory: TreeDirectory, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${directory.fd}/`), name]);
}

/** Undefined for what is gone, has become something else, or is a mount. */
export async function orGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOENT" || code === "ENOTDIR" || code === "ELOOP" || code === "EXDEV") return undefined;
    throw error;
  }
}
