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

/** Directories that stay open right above the one that is walked; of those further above every 64th does. */
const KEPT_OPEN = 64;
/** Names that are remembered of a directory that is closed; one with more stays open. */
const MOST_REMEMBERED = 10_000;

/**
 * Everything below an open directory, each directory before its content. Nothing that is mounted below is entered or
 * returned, links are returned and not followed, and what is removed meanwhile is left out. It takes few descriptors
 * however deep somebody made the tree.
 */
export async function* walkTree(
  access: TreeAccess,
  directory: TreeDirectory,
  options: Partial<Abortable> = {},
): AsyncGenerator<WalkedEntry, void, undefined> {
  const levels = [new Level(Buffer.from("."), { ...directory, close: async () => undefined })];
  try {
    for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
      const at = await reopen(access, levels);
      const names = at === undefined ? [] : await level.take(AT_ONCE);
      if (at === undefined || names.length === 0) {
        levels.pop();
        await level.close();
        continue;
      }
      // Side by side: one after the other they cost four times as much.
      const looks = await Promise.all(names.map(({ name, isDirectory }) => look(at, name, isDirectory)));
      for (const [index, { name, isDirectory }] of names.entries()) {
        options.signal?.throwIfAborted();
        const stats = looks[index];
        if (stats === undefined && !isDirectory) continue;
        if (stats !== undefined && !stats.isDirectory()) {
          yield { directory: at, name, stats };
          continue;
        }
        // Opened before it is looked at: what somebody mounted there is not ours to ask, and may never answer.
        const opened = await orGone(access.openChild(at, name));
        if (opened === undefined) continue;
        level.putBack(names.slice(index + 1));
        levels.push(new Level(name, opened));
        yield { directory: at, name, stats: await statOf(opened.fd), opened };
        await closeFar(levels);
        break;
      }
    }
  } finally {
    for (const level of levels) await level.close();
  }
}

interface Name {
  readonly name: Buffer;
  /** As the filesystem tells; some do not, and then it is found out by a look. */
  readonly isDirectory: boolean;
}

/** A directory on the way to the one that is walked, with the names that are left in it. */
class Level {
  private rest: readonly Name[] = [];
  private listing: Dir | undefined;
  private isListed = false;

  constructor(
    readonly name: Buffer,
    /** Undefined while it is closed. */
    public directory: TreeDirectory | undefined,
  ) {}

  /** The next names; none if there are no more. The directory must be open. */
  async take(most: number): Promise<readonly Name[]> {
    if (this.rest.length === 0) return this.list(most);
    const taken = this.rest.slice(0, most);
    this.rest = this.rest.slice(most);
    return taken;
  }

  putBack(names: readonly Name[]): void {
    this.rest = [...names, ...this.rest];
  }

  /** Closes the directory and remembers what is left in it, unless that is too much. */
  async suspend(): Promise<void> {
    this.rest = [...this.rest, ...(await this.list(MOST_REMEMBERED))];
    if (this.isListed) await this.close();
  }

  async close(): Promise<void> {
    await this.listing?.close();
    this.listing = undefined;
    await this.directory?.close();
    this.directory = undefined;
  }

  private async list(most: number): Promise<readonly Name[]> {
    const names: Name[] = [];
    if (this.isListed || this.directory === undefined) return names;
    this.listing ??= await opendir(`/proc/self/fd/${this.directory.fd}`, {
      encoding: "buffer" as BufferEncoding,
      bufferSize: 512,
    });
    while (names.length < most) {
      const entry = await this.listing.read();
      if (entry === null) {
        this.isListed = true;
        break;
      }
      // Asked for as bytes; the type of Node's declaration says text.
      const name = Buffer.from(entry.name as unknown as Uint8Array);
      names.push({ name, isDirectory: entry.isDirectory() });
    }
    return names;
  }
}

/** Opens the last level if it was closed, from the nearest one above that is open; undefined if it is gone. */
async function reopen(access: TreeAccess, levels: readonly Level[]): Promise<TreeDirectory | undefined> {
  const nearest = levels.findLastIndex(({ directory }) => directory !== undefined);
  let found = levels[nearest]?.directory;
  for (const level of levels.slice(nearest + 1)) {
    if (found === undefined) break;
    found = await orGone(access.openChild(found, level.name));
    level.directory = found;
  }
  return found;
}

/** Closes the level that has just come to be far above, but for every 64th: those below are opened again from it. */
async function closeFar(levels: readonly Level[]): Promise<void> {
  const far = levels.length - 1 - KEPT_OPEN;
  if (far > 0 && far % KEPT_OPEN !== 0) await levels[far]?.suspend();
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
