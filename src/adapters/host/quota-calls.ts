import { fstatSync, readFileSync } from "node:fs";
import { errnoOf } from "../../lib/errors.ts";
import { callNative, loadNative, type Native, type NativeFunction } from "../../lib/native.ts";

/** What a project takes up on its filesystem. */
export interface ProjectUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/** What the kernel can do about projects, each for the filesystem that an open directory is on. */
export interface QuotaCalls {
  /** The project that the directory belongs to; 0 is none. */
  project(directory: number): Promise<number>;
  /** Gives an empty directory, and all that will be made in it, to a project. */
  setProject(directory: number, id: number): Promise<void>;
  usage(directory: number, id: number): Promise<ProjectUsage>;
  /** So large that nothing ever reaches it, or none at all. */
  setLimit(directory: number, id: number, limit: "endless" | "none"): Promise<void>;
}

/** No quotas of projects there: switched off, not built in, or a filesystem that has none. */
const UNSUPPORTED = new Set(["ENOSYS", "ESRCH", "EOPNOTSUPP", "ENOTSUP", "ENOTTY", "EINVAL", "ENOTBLK", "ENODEV"]);

/** True if a call failed because quotas are not available, and not because of its arguments. */
export function isWithoutQuotas(error: unknown): boolean {
  return UNSUPPORTED.has(errnoOf(error) ?? "");
}

/** _IOR('X', 31, struct fsxattr) and _IOW('X', 32, struct fsxattr). */
const FS_IOC_FSGETXATTR = 0x801c581f;
const FS_IOC_FSSETXATTR = 0x401c5820;
/** struct fsxattr: flags, extent size, number of extents, project, extent size for copies (4 bytes each), 8 unused. */
const XATTR_BYTES = 28;
const XATTR_PROJECT = 12;
const FS_XFLAG_PROJINHERIT = 0x200;

/** The same number on every processor; Linux 5.14. */
const SYS_QUOTACTL_FD = 443;
const PRJQUOTA = 2;
const GET_QUOTA = ((0x800007 << 8) | PRJQUOTA) >>> 0;
const SET_QUOTA = ((0x800008 << 8) | PRJQUOTA) >>> 0;
/**
 * struct if_dqblk, 8 bytes each: hard and soft limit of space in KiB, bytes in use, hard and soft limit of inodes, inodes
 * in use, two times; then 4 bytes that say which of these are meant, and 4 that fill up.
 */
const DQBLK_BYTES = 72;
const DQBLK_SPACE = 16;
const DQBLK_INODES = 40;
const DQBLK_VALID = 64;
const QIF_BLIMITS = 1;
/** 2^58 bytes, what Kubernetes sets: above any disk, below what any format of quotas can hold. */
const ENDLESS_KIB = 2n ** 48n;

/** The kernel of this machine, by ioctl and quotactl. */
export class LinuxQuotaCalls implements QuotaCalls {
  private readonly ioctl: NativeFunction;
  private readonly quotactlFd: NativeFunction;
  private readonly quotactl: NativeFunction;

  private constructor(
    private readonly native: Native,
    /** Before Linux 5.14 a filesystem is named by its device. */
    private isByDevice: boolean,
  ) {
    const { libc } = native;
    this.ioctl = libc.func("int ioctl(int fd, ulong request, void *argument)");
    this.quotactlFd = libc.func("long syscall(long number, uint fd, uint command, uint id, void *block)");
    this.quotactl = libc.func("int quotactl(uint command, const char *device, uint id, void *block)");
  }

  private static loaded: Promise<LinuxQuotaCalls | undefined> | undefined;

  /** Undefined if koffi or the C library is not available. */
  static load(): Promise<LinuxQuotaCalls | undefined> {
    LinuxQuotaCalls.loaded ??= LinuxQuotaCalls.create({ isByDevice: false });
    return LinuxQuotaCalls.loaded;
  }

  /** For tests of how older kernels are asked. */
  static async create({ isByDevice }: { isByDevice: boolean }): Promise<LinuxQuotaCalls | undefined> {
    const native = await loadNative();
    try {
      return native && new LinuxQuotaCalls(native, isByDevice);
    } catch {
      return undefined;
    }
  }

  async project(directory: number): Promise<number> {
    return (await this.attributes(directory)).readUInt32LE(XATTR_PROJECT);
  }

  async setProject(directory: number, id: number): Promise<void> {
    // The other attributes are given back as they are.
    const attributes = await this.attributes(directory);
    attributes.writeUInt32LE((attributes.readUInt32LE(0) | FS_XFLAG_PROJINHERIT) >>> 0, 0);
    attributes.writeUInt32LE(id, XATTR_PROJECT);
    const args = [directory, FS_IOC_FSSETXATTR, attributes];
    await callNative(this.native, this.ioctl, { args, syscall: "ioctl FS_IOC_FSSETXATTR" });
  }

  async usage(directory: number, id: number): Promise<ProjectUsage> {
    const block = Buffer.alloc(DQBLK_BYTES);
    try {
      await this.control(directory, GET_QUOTA, { id, block });
    } catch (error) {
      // XFS: nothing was ever counted for this project.
      if (errnoOf(error) === "ENOENT") return { bytes: 0, inodes: 0 };
      throw error;
    }
    return {
      bytes: Number(block.readBigUInt64LE(DQBLK_SPACE)),
      inodes: Number(block.readBigUInt64LE(DQBLK_INODES)),
    };
  }

  async setLimit(directory: number, id: number, limit: "endless" | "none"): Promise<void> {
    const block = Buffer.alloc(DQBLK_BYTES);
    const kib = limit === "endless" ? ENDLESS_KIB : 0n;
    block.writeBigUInt64LE(kib, 0);
    block.writeBigUInt64LE(kib, 8);
    block.writeUInt32LE(QIF_BLIMITS, DQBLK_VALID);
    await this.control(directory, SET_QUOTA, { id, block });
  }

  private async attributes(directory: number): Promise<Buffer> {
    const attributes = Buffer.alloc(XATTR_BYTES);
    const args = [directory, FS_IOC_FSGETXATTR, attributes];
    await callNative(this.native, this.ioctl, { args, syscall: "ioctl FS_IOC_FSGETXATTR" });
    return attributes;
  }

  private async control(directory: number, command: number, of: { id: number; block: Buffer }): Promise<void> {
    if (!this.isByDevice) {
      const args = [SYS_QUOTACTL_FD, directory, command, of.id, of.block];
      try {
        await callNative(this.native, this.quotactlFd, { args, syscall: "quotactl_fd" });
        return;
      } catch (error) {
        if (errnoOf(error) !== "ENOSYS") throw error;
        this.isByDevice = true;
      }
    }
    const path = deviceOf(directory);
    await callNative(this.native, this.quotactl, { args: [command, path, of.id, of.block], syscall: "quotactl", path });
  }
}

/** The block device of the filesystem that a directory is on; fails with ENODEV where it has none. */
function deviceOf(directory: number): string {
  const { dev } = fstatSync(directory);
  const major = Number((BigInt(dev) >> 8n) & 0xfffn);
  const minor = Number((BigInt(dev) & 0xffn) | ((BigInt(dev) >> 12n) & 0xfff00n));
  const none = (): Error => Object.assign(new Error(`no block device ${major}:${minor}`), { code: "ENODEV" });
  try {
    const name = /^DEVNAME=(.+)$/m.exec(readFileSync(`/sys/dev/block/${major}:${minor}/uevent`, "utf8"))?.[1];
    if (name !== undefined) return `/dev/${name}`;
  } catch {
    // Not in sysfs: no block device.
  }
  throw none();
}
