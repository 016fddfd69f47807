import { constants } from "node:fs";
import { callNative, loadNative, type Native, type NativeFunction } from "../../lib/native.ts";

type FunctionName = "syscall" | "unlinkat" | "getdents64" | "renameat" | "mount" | "umount2" | "flock";

/** What `call` was asked to do, for the error. */
interface Attempt {
  readonly name: string;
  readonly path: string;
}

const RESOLVE_NO_XDEV = 0x01;
const RESOLVE_NO_MAGICLINKS = 0x02;
const RESOLVE_NO_SYMLINKS = 0x04;
const RESOLVE_BENEATH = 0x08;
/** The same number on every processor that Node runs on. */
const SYS_OPENAT2 = 437;
/** Not among Node's constants. */
const O_CLOEXEC = 0o2000000;
const O_PATH = 0o10000000;
const AT_REMOVEDIR = 0x200;
const LOCK_EX_NB = 2 | 4;
const AT_FDCWD = -100;
const AT_SYMLINK_NOFOLLOW = 0x100;
/** struct statx, of which two fields count here: the attributes, and those of them that the kernel knows of. */
const STATX_BYTES = 256;
const STATX_ATTRIBUTES = 8;
const STATX_KNOWN = 56;
const STATX_ATTR_MOUNT_ROOT = 0x2000n;

/** System calls that Node does not have. Each rejects with a system error that carries its errno code. */
export class SystemCalls {
  private readonly functions: Readonly<Record<FunctionName, NativeFunction>>;
  private trim: NativeFunction | undefined;
  private statx: NativeFunction | "none" | undefined;

  private constructor(private readonly native: Native) {
    const { libc } = native;
    this.functions = {
      syscall: libc.func("long syscall(long number, int dirfd, const void *path, const void *how, size_t size)"),
      unlinkat: libc.func("int unlinkat(int dirfd, const void *path, int flags)"),
      getdents64: libc.func("intptr_t getdents64(int fd, void *buffer, size_t size)"),
      renameat: libc.func("int renameat(int from, const void *old, int to, const void *fresh)"),
      mount: libc.func(
        "int mount(const char *source, const char *target, const char *type, ulong flags, const char *data)",
      ),
      umount2: libc.func("int umount2(const char *target, int flags)"),
      flock: libc.func("int flock(int fd, int operation)"),
    };
  }

  private static loaded: Promise<SystemCalls | undefined> | undefined;

  /** Undefined if koffi or the C library is not available. */
  static load(): Promise<SystemCalls | undefined> {
    SystemCalls.loaded ??= loadNative().then((native) => {
      try {
        return native && new SystemCalls(native);
      } catch {
        return undefined;
      }
    });
    return SystemCalls.loaded;
  }

  /**
   * Opens a directory that is directly in `parent`: never through a link, never across a mount (a bind mount counts),
   * never outside. EXDEV: a mount is there; ELOOP or ENOTDIR: no directory; ENOSYS: a kernel before 5.6.
   */
  openBeneath(parent: number, name: Buffer): Promise<number> {
    const flags = constants.O_DIRECTORY | constants.O_NOFOLLOW | O_CLOEXEC;
    return this.open(parent, name, { flags, resolve: RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH });
  }

  /** Like `openBeneath` for an entry of any kind, which is only named by the descriptor: a link itself, not its target. */
  openEntry(parent: number, name: Buffer): Promise<number> {
    const flags = O_PATH | constants.O_NOFOLLOW | O_CLOEXEC;
    return this.open(parent, name, { flags, resolve: RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH });
  }

  /**
   * Names by a descriptor what is at a path below `root`, links on the way followed as long as they stay below it.
   * EXDEV: the path leads outside; EAGAIN: something on the way moved meanwhile, try again.
   */
  openInside(root: number, path: Buffer): Promise<number> {
    return this.open(root, path, { flags: O_PATH | O_CLOEXEC, resolve: RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS });
  }

  private open(parent: number, path: Buffer, how: { flags: number; resolve: number }): Promise<number> {
    const encoded = Buffer.alloc(24);
    encoded.writeBigUInt64LE(BigInt(how.flags), 0);
    encoded.writeBigUInt64LE(BigInt(how.resolve), 16);
    const args = [SYS_OPENAT2, parent, terminated(path), encoded, encoded.length];
    return this.call(this.functions.syscall, args, { name: "openat2", path: path.toString() });
  }

  async unlink(parent: number, name: Buffer): Promise<void> {
    const args = [parent, terminated(name), 0];
    await this.call(this.functions.unlinkat, args, { name: "unlinkat", path: name.toString() });
  }

  async removeDirectory(parent: number, name: Buffer): Promise<void> {
    const args = [parent, terminated(name), AT_REMOVEDIR];
    await this.call(this.functions.unlinkat, args, { name: "unlinkat", path: name.toString() });
  }

  async rename(from: { parent: number; name: Buffer }, to: { parent: number; name: Buffer }): Promise<void> {
    const args = [from.parent, terminated(from.name), to.parent, terminated(to.name)];
    await this.call(this.functions.renameat, args, { name: "renameat", path: from.name.toString() });
  }

  /** Fills the buffer with directory entries; 0 at the end. */
  readEntries(directory: number, buffer: Buffer): Promise<number> {
    return this.call(this.functions.getdents64, [directory, buffer, buffer.length], { name: "getdents64", path: "" });
  }

  async mount(request: { source: string; target: string; type: string; flags: number; data: string }): Promise<void> {
    const args = [request.source, request.target, request.type, request.flags, request.data];
    await this.call(this.functions.mount, args, { name: "mount", path: request.target });
  }

  async unmount(target: string, flags: number): Promise<void> {
    await this.call(this.functions.umount2, [target, flags], { name: "umount2", path: target });
  }

  /** Takes the exclusive lock of an open file or fails with EAGAIN. */
  async lock(fd: number): Promise<void> {
    await this.call(this.functions.flock, [fd, LOCK_EX_NB], { name: "flock", path: "" });
  }

  /**
   * Whether a mount begins at a path: one question, however many mounts there are. Undefined where nothing is there, and
   * where the kernel (before 5.8) or the C library cannot tell.
   */
  async isMountRoot(path: string): Promise<boolean | undefined> {
    this.statx ??= this.findStatx();
    if (this.statx === "none") return undefined;
    const block = Buffer.alloc(STATX_BYTES);
    try {
      await this.call(this.statx, [AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, block], { name: "statx", path });
    } catch {
      return undefined;
    }
    if ((block.readBigUInt64LE(STATX_KNOWN) & STATX_ATTR_MOUNT_ROOT) === 0n) return undefined;
    return (block.readBigUInt64LE(STATX_ATTRIBUTES) & STATX_ATTR_MOUNT_ROOT) !== 0n;
  }

  private findStatx(): NativeFunction | "none" {
    try {
      return this.native.libc.func("int statx(int dirfd, const char *path, int flags, uint mask, void *block)");
    } catch {
      return "none";
    }
  }

  /** Gives freed memory back to the system; only glibc has it. */
  async trimMemory(): Promise<void> {
    this.trim ??= this.native.libc.func("int malloc_trim(size_t pad)");
    await this.call(this.trim, [0], { name: "malloc_trim", path: "" });
  }

  private call(fn: NativeFunction, args: readonly unknown[], { name, path }: Attempt): Promise<number> {
    return callNative(this.native, fn, { args, syscall: name, path });
  }
}

/** C strings end with a zero byte; a name of the kernel never contains one. */
function terminated(name: Buffer): Buffer {
  return Buffer.concat([name, Buffer.alloc(1)]);
}
