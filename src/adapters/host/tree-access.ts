import { closeSync, constants } from "node:fs";
import { type FileHandle, open, readdir, readFile, rename, rmdir, unlink } from "node:fs/promises";
import { SystemCalls } from "./system-calls.ts";

/** An entry of a directory; `unknown` where the filesystem does not tell. Names are bytes: not all are UTF-8. */
export interface TreeEntry {
  readonly name: Buffer;
  readonly kind: "directory" | "other" | "unknown";
}

/** An open directory. */
export interface TreeDirectory {
  readonly fd: number;
  close(): Promise<void>;
}

/**
 * The few steps that removing a tree needs, each relative to an open directory, so that no path can be swapped in
 * between. `openChild` fails with EXDEV on a mount of any kind, and with ELOOP or ENOTDIR on what is no directory.
 */
export interface TreeAccess {
  openParent(path: string): Promise<TreeDirectory>;
  openChild(parent: TreeDirectory, name: Buffer): Promise<TreeDirectory>;
  /** Names an entry of any kind by a descriptor (O_PATH); fails with EXDEV on what is mounted there. */
  openEntry(parent: TreeDirectory, name: Buffer): Promise<TreeDirectory>;
  /** The entries there are now; an empty answer means that the directory is empty. */
  list(directory: TreeDirectory): Promise<readonly TreeEntry[]>;
  unlink(parent: TreeDirectory, name: Buffer): Promise<void>;
  removeDirectory(parent: TreeDirectory, name: Buffer): Promise<void>;
  rename(from: { parent: TreeDirectory; name: Buffer }, to: { parent: TreeDirectory; name: Buffer }): Promise<void>;
}

/** By openat2 and unlinkat. */
export class NativeTreeAccess implements TreeAccess {
  constructor(private readonly calls: SystemCalls) {}

  openParent(path: string): Promise<TreeDirectory> {
    return openDirectory(path);
  }

  async openChild(parent: TreeDirectory, name: Buffer): Promise<TreeDirectory> {
    const fd = await this.calls.openBeneath(parent.fd, name);
    return { fd, close: async () => closeSync(fd) };
  }

  async openEntry(parent: TreeDirectory, name: Buffer): Promise<TreeDirectory> {
    const fd = await this.calls.openEntry(parent.fd, name);
    return { fd, close: async () => closeSync(fd) };
  }

  async list(directory: TreeDirectory): Promise<readonly TreeEntry[]> {
    // Opened anew for each listing: a position in a directory that is being emptied may skip entries.
    const fresh = await this.calls.openBeneath(directory.fd, Buffer.from("."));
    try {
      const entries: TreeEntry[] = [];
      const buffer = Buffer.alloc(64 * 1024);
      while (entries.length < MOST_AT_ONCE) {
        const length = await this.calls.readEntries(fresh, buffer);
        if (length === 0) break;
        entries.push(...parseEntries(buffer.subarray(0, length)));
      }
      return entries;
    } finally {
      closeSync(fresh);
    }
  }

  unlink(parent: TreeDirectory, name: Buffer): Promise<void> {
    return this.calls.unlink(parent.fd, name);
  }

  removeDirectory(parent: TreeDirectory, name: Buffer): Promise<void> {
    return this.calls.removeDirectory(parent.fd, name);
  }

  rename(from: { parent: TreeDirectory; name: Buffer }, to: { parent: TreeDirectory; name: Buffer }): Promise<void> {
    return this.calls.rename({ parent: from.parent.fd, name: from.name }, { parent: to.parent.fd, name: to.name });
  }
}

/** Entries listed in one go, so that a directory of millions does not fill the memory. */
const MOST_AT_ONCE = 10_000;
/** Not among Node's constants. */
const O_PATH = 0o10000000;
const DT_UNKNOWN = 0;
const DT_DIR = 4;

/** getdents64: inode and position (8 bytes each), length of the record (2), type (1), name up to a zero byte. */
export function parseEntries(buffer: Buffer): TreeEntry[] {
  const entries: TreeEntry[] = [];
  for (let at = 0; at + 19 < buffer.length; ) {
    const length = buffer.readUInt16LE(at + 16);
    if (length === 0) break;
    const type = buffer[at + 18];
    // A copy: the buffer is filled again.
    const name = Buffer.from(buffer.subarray(at + 19, buffer.indexOf(0, at + 19)));
    at += length;
    if (name.equals(Buffer.from(".")) || name.equals(Buffer.from(".."))) continue;
    entries.push({ name, kind: type === DT_DIR ? "directory" : type === DT_UNKNOWN ? "unknown" : "other" });
  }
  return entries;
}

/**
 * The same without koffi or openat2: `/proc/self/fd/N/name` begins at exactly that open directory, O_NOFOLLOW refuses
 * links, and the mount id of each open directory in /proc shows a mount of any kind.
 */
export class ProcTreeAccess implements TreeAccess {
  openParent(path: string): Promise<TreeDirectory> {
    return openDirectory(path);
  }

  async openChild(parent: TreeDirectory, name: Buffer): Promise<TreeDirectory> {
    return this.sameMount(parent, await openDirectory(within(parent, name)));
  }

  async openEntry(parent: TreeDirectory, name: Buffer): Promise<TreeDirectory> {
    const handle = await open(within(parent, name), O_PATH | constants.O_NOFOLLOW);
    return this.sameMount(parent, { fd: handle.fd, close: () => handle.close() });
  }

  private async sameMount(parent: TreeDirectory, child: TreeDirectory): Promise<TreeDirectory> {
    try {
      const [outer, inner] = await Promise.all([mountId(parent.fd), mountId(child.fd)]);
      if (outer === inner) return child;
      throw Object.assign(new Error("EXDEV: a mount is there"), { code: "EXDEV" });
    } catch (error) {
      await child.close();
      throw error;
    }
  }

  async list(directory: TreeDirectory): Promise<readonly TreeEntry[]> {
    const entries = await readdir(`/proc/self/fd/${directory.fd}`, { withFileTypes: true, encoding: "buffer" });
    return entries.map((entry) => ({
      // Asked for as bytes; the type of Node 20's declaration says text.
      name: Buffer.from(entry.name as unknown as Uint8Array),
      kind: entry.isDirectory() ? "directory" : "other",
    }));
  }

  unlink(parent: TreeDirectory, name: Buffer): Promise<void> {
    return unlink(within(parent, name));
  }

  removeDirectory(parent: TreeDirectory, name: Buffer): Promise<void> {
    return rmdir(within(parent, name));
  }

  rename(from: { parent: TreeDirectory; name: Buffer }, to: { parent: TreeDirectory; name: Buffer }): Promise<void> {
    return rename(within(from.parent, from.name), within(to.parent, to.name));
  }
}

async function openDirectory(path: string | Buffer): Promise<TreeDirectory> {
  const handle: FileHandle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  return { fd: handle.fd, close: () => handle.close() };
}

function within(parent: TreeDirectory, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${parent.fd}/`), name]);
}

async function mountId(fd: number): Promise<string> {
  const info = await readFile(`/proc/self/fdinfo/${fd}`, "utf8");
  const id = /^mnt_id:\s*(\d+)$/m.exec(info)?.[1];
  if (id === undefined)
    throw Object.assign(new Error("ENOSYS: mnt_id missing in /proc/self/fdinfo"), { code: "ENOSYS" });
  return id;
}

/** The best access this machine has; openat2 is tried once, since old kernels and strict sandboxes refuse it. */
export async function chooseTreeAccess(): Promise<TreeAccess> {
  const calls = await SystemCalls.load();
  if (calls === undefined) return new ProcTreeAccess();
  const native = new NativeTreeAccess(calls);
  const root = await native.openParent("/");
  try {
    await (await native.openChild(root, Buffer.from("."))).close();
    return native;
  } catch {
    return new ProcTreeAccess();
  } finally {
    await root.close();
  }
}
