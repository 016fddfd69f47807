import { type Dir, fstat, type Stats } from "node:fs";
import { lstat, opendir } from "node:fs/promises";
import { promisify } from "node:util";
import type { Abortable } from "../../lib/abort.ts";
import { errnoOf } from "../../lib/errors.ts";
import type { TreeAccess, TreeDirectory } from "./tree-access.ts";

const statOf: (fd: number) => Promise<Stats> = promisify(fstat);

/** How many entries are looked at side by side. */
const AT_ONCE = 32;

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
 * returned, links are returned and not followed, and what is removed meanwhile is left out. It takes one descriptor a level.
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
  for await (const batch of batches(listing)) {
    // Side by side: one after the other they cost four times as much.
    const looks = await Promise.all(batch.map(({ name, isDirectory }) => look(directory, name, isDirectory)));
    for (const [index, { name, isDirectory }] of batch.entries()) {
      options.signal?.throwIfAborted();
      const seen = looks[index];
      if (seen === undefined && !isDirectory) continue;
      if (seen !== undefined && !seen.isDirectory()) {
        yield { directory, name, stats: seen };
        continue;
      }
      // Opened before it is looked at: what somebody mounted there is not ours to ask, and may never answer.
      const opened = await orGone(access.openChild(directory, name));
      if (opened === undefined) continue;
      try {
        yield { directory, name, stats: await statOf(opened.fd), opened };
        yield* walkTree(access, opened, options);
      } finally {
        await opened.close();
      }
    }
  }
}

interface Name {
  readonly name: Buffer;
  /** As the filesystem tells; some do not, and then it is found out by a look. */
  readonly isDirectory: boolean;
}

/** The names in a directory, so many at a time. */
async function* batches(listing: Dir): AsyncGenerator<readonly Name[], void, undefined> {
  let batch: Name[] = [];
  for await (const entry of listing) {
    // Asked for as bytes; the type of Node's declaration says text.
    const name = Buffer.from(entry.name as unknown as Uint8Array);
    batch.push({ name, isDirectory: entry.isDirectory() });
    if (batch.length < AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

async function look(directory: TreeDirectory, name: Buffer, isDirectory: boolean): Promise<Stats | undefined> {
  return isDirectory ? undefined : orGone(lstat(entryPath(directory, name)));
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
