import { closeSync, type Dir, opendirSync, openSync, readlinkSync, readSync, statSync } from "node:fs";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fieldAfter, readKernelFile } from "./kernel-file.ts";

/** Bytes and inodes of files that have no name any more and are still open. */
export interface DeletedUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** By where they are: on the node's own filesystem, or in writable layers of containers. */
export interface DeletedFiles {
  readonly node: DeletedUsage;
  readonly layers: DeletedUsage;
}

/** Processes of a pod, and descriptors of all of them, that are looked at: a pod may have any number. */
const MOST_PROCESSES = 256;
const MOST_DESCRIPTORS = 4096;
/** Bytes of a table of mounts that are read. */
const MOST_TABLE_BYTES = 1024 * 1024;
/** Milliseconds after which others get their turn, and that one pod may take in all. */
const SLICE_MS = 8;
const MOST_MS = 1000;
const DELETED = " (deleted)";
/** Filesystems that answer from memory about a file that is open; a network filesystem or a user's own may hang. */
const LOCAL = new Set(["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay"]);

/**
 * What processes keep on disk by files that were deleted while they are open: it is in no directory, and counts for
 * nobody otherwise. Reads only the kernel's memory, in slices. What is gone meanwhile, or too much, is left out; never
 * rejects.
 */
export async function deletedFiles(
  pids: readonly number[],
  nodeDevice: number,
  { proc = "/proc", sliceMs = SLICE_MS }: { readonly proc?: string; readonly sliceMs?: number } = {},
): Promise<DeletedFiles> {
  const found = { node: { bytes: 0, inodes: 0 }, layers: { bytes: 0, inodes: 0 } };
  const seen = new Set<string>();
  const tables: Tables = new Map();
  const end = performance.now() + MOST_MS;
  let sliceEnd = performance.now() + sliceMs;
  let left = MOST_DESCRIPTORS;
  for (const pid of pids.slice(0, MOST_PROCESSES)) {
    if (left === 0 || performance.now() >= end) break;
    const own = `${proc}/${pid}`;
    const names = namesIn(`${own}/fd`, left);
    left -= names.length;
    const typeOf = filesystemTypes(own, tables);
    for (const name of names) {
      const now = performance.now();
      if (now >= end) break;
      if (now >= sliceEnd) {
        await nextTurn();
        sliceEnd = performance.now() + sliceMs;
      }
      const file = statDeleted(`${own}/fd/${name}`, name, typeOf);
      if (file === undefined || seen.has(file.key)) continue;
      seen.add(file.key);
      const place = file.isLayer ? found.layers : file.device === nodeDevice ? found.node : undefined;
      if (place === undefined) continue;
      place.bytes += file.bytes;
      place.inodes += 1;
    }
  }
  return found;
}

interface DeletedFile {
  readonly key: string;
  readonly device: number;
  readonly bytes: number;
  readonly isLayer: boolean;
}

function statDeleted(
  path: string,
  name: string,
  typeOf: (descriptor: string) => string | undefined,
): DeletedFile | undefined {
  try {
    if (!readlinkSync(path).endsWith(DELETED)) return undefined;
    const type = typeOf(name);
    if (type === undefined || !LOCAL.has(type)) return undefined;
    const stats = statSync(path);
    // A name may end like that, too.
    if (!stats.isFile() || stats.nlink > 0) return undefined;
    const { dev: device, ino, blocks } = stats;
    return { key: `${device}:${ino}`, device, bytes: blocks * 512, isLayer: type === "overlay" };
  } catch {
    return undefined;
  }
}

/** The types of mounts by id, by namespace: many processes share one, and its table may be long. */
type Tables = Map<string, ReadonlyMap<number, string>>;

/**
 * The type of the filesystem of a process's descriptor, by the mount that it was opened through in the process's own
 * namespace: the file itself is not asked.
 */
function filesystemTypes(own: string, tables: Tables): (descriptor: string) => string | undefined {
  let types: ReadonlyMap<number, string> | undefined;
  return (descriptor) => {
    const mount = fieldAfter(readKernelFile(`${own}/fdinfo/${descriptor}`) ?? "", "mnt_id:");
    types ??= mountTypes(own, tables);
    return mount === undefined ? undefined : types.get(mount);
  };
}

function mountTypes(own: string, tables: Tables): ReadonlyMap<number, string> {
  const namespace = readlinkSync(`${own}/ns/mnt`);
  const types = tables.get(namespace) ?? typesIn(head(`${own}/mountinfo`, MOST_TABLE_BYTES));
  tables.set(namespace, types);
  return types;
}

/** `36 35 98:0 /root /target rw … - type source options`: nothing else of a line is taken apart. */
function typesIn(table: string): ReadonlyMap<number, string> {
  const types = new Map<number, string>();
  for (const line of table.split("\n")) {
    const at = line.indexOf(" - ") + 3;
    if (at > 2) types.set(Number.parseInt(line, 10), line.slice(at, line.indexOf(" ", at)));
  }
  return types;
}

/** The first bytes of a file of the kernel, which it returns a page at a time. */
function head(path: string, mostBytes: number): string {
  const buffer = Buffer.allocUnsafe(mostBytes);
  const fd = openSync(path, "r");
  try {
    let length = 0;
    for (let last = 1; last > 0 && length < mostBytes; length += last) {
      last = readSync(fd, buffer, length, mostBytes - length, null);
    }
    return buffer.toString("latin1", 0, length);
  } finally {
    closeSync(fd);
  }
}

/** Names in a directory, so many at most: that of a process's descriptors may have a million. */
function namesIn(path: string, most: number): readonly string[] {
  const names: string[] = [];
  let directory: Dir | undefined;
  try {
    directory = opendirSync(path);
    for (let entry = directory.readSync(); entry !== null && names.length < most; entry = directory.readSync()) {
      names.push(entry.name);
    }
  } catch {
    // The process is gone.
  } finally {
    directory?.closeSync();
  }
  return names;
}
