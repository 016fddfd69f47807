import { randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  symlink,
  unlink,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { errnoOf } from "../../lib/errors.ts";
import { hostError } from "./host-error.ts";

/** One file of a volume; the path is relative to it and was checked by whoever made it. */
export interface VolumeFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** Defaults to root. */
  readonly uid?: number;
}

export interface WriteRequest {
  readonly files: ReadonlyMap<string, VolumeFile>;
  /** The time as it stands in the directory's name. */
  readonly stamp: string;
  /** Gives all of it to this group, readable. */
  readonly gid?: number;
  /** It is known to hold something else: nothing has to be compared. */
  readonly isOther?: boolean;
}

export interface WriteDeps {
  removeTree(path: string): Promise<void>;
}

const DATA = "..data";
const DATA_NEW = "..data_tmp";
const OWN_UID = process.getuid?.() ?? 0;
const OWN_GID = process.getgid?.() ?? 0;
/** Files in flight at once; leaves threads of the pool for others. */
const SIDE_BY_SIDE = 8;

/**
 * Replaces the content of a volume by one rename, so that a reader sees all of the old or all of the new:
 *
 *     DIR/..2026_01_02_03_04_05.1a2b3c4d/key     the content, never changed again
 *     DIR/..data -> ..2026_01_02_03_04_05.1a2b3c4d    what the rename swaps
 *     DIR/key -> ..data/key                      what containers open
 *
 * False when the content is the same already. After a failure (a full disk) the old content is whole; what an agent
 * that died left behind goes with the next write. Only one write a directory at a time.
 */
export async function writeVolume(deps: WriteDeps, directory: string, request: WriteRequest): Promise<boolean> {
  try {
    const current = request.isOther === true ? undefined : await linkTarget(join(directory, DATA));
    if (current !== undefined && (await isSame(join(directory, current), request))) {
      await arrange(deps, directory, { current, files: request.files });
      return false;
    }
    const fresh = `..${request.stamp}.${randomBytes(4).toString("hex")}`;
    try {
      await writeAll(join(directory, fresh), request);
      await replaceLink(fresh, directory);
    } catch (error) {
      await deps.removeTree(join(directory, fresh)).catch(() => undefined);
      throw error;
    }
    await arrange(deps, directory, { current: fresh, files: request.files });
    await give(directory, request.gid);
    return true;
  } catch (error) {
    throw hostError(`write ${directory}`, error);
  }
}

async function replaceLink(fresh: string, directory: string): Promise<void> {
  await orMissing(unlink(join(directory, DATA_NEW)));
  await symlink(fresh, join(directory, DATA_NEW));
  await rename(join(directory, DATA_NEW), join(directory, DATA));
}

async function writeAll(base: string, { files, gid }: WriteRequest): Promise<void> {
  await makeDirectory(base, gid);
  const made = new Map<string, Promise<void>>([[base, Promise.resolve()]]);
  const parent = (path: string): Promise<void> => {
    const known = made.get(path);
    if (known !== undefined) return known;
    const making = parent(dirname(path)).then(() => makeDirectory(path, gid));
    made.set(path, making);
    return making;
  };
  await sideBySide(files, async ([name, file]) => {
    const path = join(base, name);
    await parent(dirname(path));
    await writeOne(path, file, gid);
  });
}

/** A few at a time; the first failure is the answer once all in flight have ended. */
async function sideBySide<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) await work(next.value);
  };
  const results = await Promise.allSettled(Array.from({ length: SIDE_BY_SIDE }, worker));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}

async function makeDirectory(path: string, gid: number | undefined): Promise<void> {
  await mkdir(path, { mode: 0o755 });
  await chmod(path, 0o755);
  await give(path, gid);
}

async function give(path: string, gid: number | undefined): Promise<void> {
  if (gid === undefined) return;
  const { uid, mode } = await lstat(path);
  await chown(path, uid, gid);
  await chmod(path, (mode & 0o7777) | 0o2550);
}

async function writeOne(path: string, file: VolumeFile, gid: number | undefined): Promise<void> {
  const handle = await open(path, "wx", 0o600);
  try {
    if (file.bytes.length > 0) await handle.writeFile(file.bytes);
    if (file.uid !== undefined || gid !== undefined) await handle.chown(file.uid ?? OWN_UID, gid ?? OWN_GID);
    await handle.chmod(modeOf(file, gid));
  } finally {
    await handle.close();
  }
}

function modeOf(file: VolumeFile, gid: number | undefined): number {
  return gid === undefined ? file.mode : file.mode | 0o440;
}

/** Compares what is there with what is wanted: names, modes, owners, bytes. */
async function isSame(base: string, { files, gid }: WriteRequest): Promise<boolean> {
  const there = await listFiles(base, "");
  if (there === undefined || there.size !== files.size) return false;
  for (const [path, file] of files) {
    const stats = there.get(path);
    if (stats === undefined || stats.size !== file.bytes.length) return false;
    if ((stats.mode & 0o7777) !== modeOf(file, gid) || stats.uid !== (file.uid ?? OWN_UID)) return false;
    if (gid !== undefined && stats.gid !== gid) return false;
  }
  let isEqual = true;
  await sideBySide(files, async ([path, file]) => {
    if (!isEqual || file.bytes.length === 0) return;
    const bytes = await orMissing(readFile(join(base, path)));
    if (bytes === undefined || Buffer.compare(bytes, file.bytes) !== 0) isEqual = false;
  });
  return isEqual;
}

/** All that is no directory, by its path; undefined when there is no such directory. */
async function listFiles(base: string, below: string): Promise<Map<string, Stats> | undefined> {
  const entries = await orMissing(readdir(join(base, below), { withFileTypes: true }));
  if (entries === undefined) return undefined;
  const found = new Map<string, Stats>();
  await sideBySide(entries, async (entry) => {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) for (const [inner, stats] of (await listFiles(base, path)) ?? []) found.set(inner, stats);
    else found.set(path, await lstat(join(base, path)));
  });
  return found;
}

interface Arrangement {
  readonly current: string;
  readonly files: ReadonlyMap<string, VolumeFile>;
}

/** Links for what is there now, none for what is not, and nothing of earlier contents. */
async function arrange(deps: WriteDeps, directory: string, { current, files }: Arrangement): Promise<void> {
  const wanted = new Set([...files.keys()].map((path) => path.split("/", 1)[0] ?? path));
  const entries = await readdir(directory, { withFileTypes: true });
  const there = new Set(entries.map(({ name }) => name));
  const missing = [...wanted].filter((name) => !there.has(name));
  await sideBySide(missing, (name) => symlink(join(DATA, name), join(directory, name)));
  const extra = entries.filter(({ name }) => name !== DATA && name !== current && !wanted.has(name));
  await sideBySide(extra, async (entry) => {
    const path = join(directory, entry.name);
    // Only what a write makes is taken away: links, and directories that begin with two dots.
    if (entry.isSymbolicLink()) await orMissing(unlink(path));
    else if (entry.isDirectory() && entry.name.startsWith("..")) await deps.removeTree(path);
  });
}

async function linkTarget(path: string): Promise<string | undefined> {
  const target = await orMissing(readlink(path));
  return target?.includes("/") ? undefined : target;
}

async function orMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR" || errnoOf(error) === "EINVAL") return undefined;
    throw error;
  }
}
