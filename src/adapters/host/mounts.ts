import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { errnoOf } from "../../lib/errors.ts";
import { exec } from "./exec.ts";
import { HostError, hostError } from "./host-error.ts";
import { type MountEntry, mountOf, readMountsNear, readMountTable } from "./mount-table.ts";
import { SystemCalls } from "./system-calls.ts";

/** What is mounted by the agent itself; anything that can hang (NFS, FUSE) is mounted by a child process instead. */
export type MountRequest =
  | {
      readonly kind: "bind";
      readonly source: string;
      readonly target: string;
      readonly readonly?: boolean;
      /** Also what is mounted below the source. */
      readonly recursive?: boolean;
    }
  | {
      readonly kind: "tmpfs";
      readonly target: string;
      readonly sizeBytes?: number;
      readonly mode: number;
      /** Never written to swap, where the kernel can do that (6.4): for secrets. */
      readonly noSwap?: boolean;
    }
  | { readonly kind: "hugetlbfs"; readonly target: string; readonly pageSizeBytes: number; readonly mode: number };

const FLAGS: Readonly<Record<string, number>> = {
  ro: 0x1,
  nosuid: 0x2,
  nodev: 0x4,
  noexec: 0x8,
  noatime: 0x400,
  nodiratime: 0x800,
  relatime: 0x200000,
};
const MS_REMOUNT = 0x20;
const MS_BIND = 0x1000;
const MS_REC = 0x4000;
const MS_SHARED = 0x100000;
const MNT_DETACH = 0x2;
const UMOUNT_NOFOLLOW = 0x8;

/** A mount call on a local filesystem takes microseconds; a child that takes this long hangs. */
const COMMAND_LIMIT_MS = 10_000;

/** Mounts by system call, or by the util-linux commands if koffi is not available. */
export class Mounts {
  constructor(
    private readonly clock: Clock,
    private readonly loadCalls: () => Promise<SystemCalls | undefined> = () => SystemCalls.load(),
  ) {}

  async mount(request: MountRequest): Promise<void> {
    const what = `mount ${request.kind} at ${request.target}`;
    try {
      if (request.kind === "bind") await this.mountBind(request);
      else if (request.kind === "tmpfs") await this.mountTmpfs(request);
      else await this.mountHugePages(request);
    } catch (error) {
      throw hostError(what, error);
    }
  }

  /** Ends the topmost mount at exactly this path; one that is not there is success. `lazy`: even if it is busy. */
  async unmount(target: string, options: { lazy?: boolean } = {}): Promise<void> {
    try {
      const calls = await this.loadCalls();
      if (calls === undefined) return await this.command("umount", [...(options.lazy ? ["--lazy"] : []), "--", target]);
      await calls.unmount(target, UMOUNT_NOFOLLOW | (options.lazy ? MNT_DETACH : 0));
    } catch (error) {
      if (errnoOf(error) === "ENOENT" || mountAt(target) === undefined) return;
      throw hostError(`unmount ${target}`, error);
    }
  }

  /**
   * Makes sure that a directory lies on a shared mount, so that mounts below it can be propagated to containers and back.
   * If it does not, it is bound onto itself, as Kubernetes does with its root directory, with all that is mounted below.
   * True if that was necessary. Safe to repeat.
   */
  async makeShared(path: string): Promise<boolean> {
    const real = realpathSync(path);
    if (mountOf(readMountTable(), real)?.isShared === true) return false;
    await this.mount({ kind: "bind", source: real, target: real, recursive: true });
    try {
      const calls = await this.loadCalls();
      if (calls === undefined) await this.command("mount", ["--make-rshared", "--", real]);
      else await calls.mount({ source: "none", target: real, type: "none", flags: MS_SHARED | MS_REC, data: "" });
      return true;
    } catch (error) {
      await this.unmount(real, { lazy: true });
      throw hostError(`make ${real} a shared mount`, error);
    }
  }

  private async mountTmpfs({ target, sizeBytes, mode, noSwap }: MountRequest & { kind: "tmpfs" }): Promise<void> {
    const size = sizeBytes === undefined || sizeBytes <= 0 ? [] : [`size=${Math.ceil(sizeBytes)}`];
    const data = [`mode=${mode.toString(8)}`, ...size];
    if (noSwap === true && !Mounts.swapsAlways) {
      try {
        return await this.mountFilesystem("tmpfs", target, [...data, "noswap"]);
      } catch {
        // An older kernel: it may refuse the word, or the mount for another reason, which the next attempt tells.
      }
      await this.mountFilesystem("tmpfs", target, data);
      Mounts.swapsAlways = true;
      return;
    }
    await this.mountFilesystem("tmpfs", target, data);
  }

  /** The kernel does not know `noswap`; asked once. */
  private static swapsAlways = false;

  private mountHugePages({ target, pageSizeBytes, mode }: MountRequest & { kind: "hugetlbfs" }): Promise<void> {
    return this.mountFilesystem("hugetlbfs", target, [`pagesize=${pageSizeBytes}`, `mode=${mode.toString(8)}`]);
  }

  private async mountFilesystem(type: string, target: string, words: readonly string[]): Promise<void> {
    const data = words.join(",");
    const calls = await this.loadCalls();
    if (calls === undefined) return this.command("mount", ["-t", type, "-o", data, type, target]);
    await calls.mount({ source: type, target, type, flags: 0, data });
  }

  private async mountBind(request: MountRequest & { kind: "bind" }): Promise<void> {
    const { source, target, recursive = false } = request;
    const calls = await this.loadCalls();
    if (calls === undefined) await this.command("mount", [recursive ? "--rbind" : "--bind", "--", source, target]);
    else await calls.mount({ source, target, type: "none", flags: MS_BIND | (recursive ? MS_REC : 0), data: "" });
    if (!request.readonly) return;
    try {
      await this.makeReadonly(calls, target);
    } catch (error) {
      // Half a mount is worse than none: it would be writable.
      await this.unmount(target, { lazy: true });
      throw error;
    }
  }

  /** The kernel ignores `ro` on a new bind mount. The other flags are given again, or the remount would clear them. */
  private async makeReadonly(calls: SystemCalls | undefined, target: string): Promise<void> {
    const kept = mountAt(target)?.options.filter((option) => Object.hasOwn(FLAGS, option) && option !== "ro") ?? [];
    if (calls === undefined) {
      return this.command("mount", ["-o", ["remount", "bind", "ro", ...kept].join(","), "--", target]);
    }
    const flags = ["ro", ...kept].reduce((sum, option) => sum | (FLAGS[option] ?? 0), MS_REMOUNT | MS_BIND);
    await calls.mount({ source: "none", target, type: "none", flags, data: "" });
  }

  private async command(file: string, args: readonly string[]): Promise<void> {
    const result = await exec(this.clock, [file, ...args], { timeoutMs: COMMAND_LIMIT_MS });
    if (result.code !== 0)
      throw new HostError("Unknown", result.stderr.trim() || `${file} exited with code ${result.code}`);
  }
}

/** The topmost mount at exactly this path (links above its last part are followed), if one is there. Own paths only. */
export function mountAt(path: string): MountEntry | undefined {
  return mountsAt(path).at(-1);
}

/** All mounts at exactly this path, outermost first, by the kernel's table alone: what is mounted there may hang. */
export function mountsAt(path: string): readonly MountEntry[] {
  const real = join(realDirectory(dirname(path)), basename(path));
  return readMountsNear(real).filter(({ target }) => target === real);
}

function realDirectory(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
