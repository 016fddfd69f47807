import { readFileSync } from "node:fs";
import { realpath, stat, statfs } from "node:fs/promises";
import type { FilesystemSpace, InterfaceUsage, PressureStall } from "../../model/usage.ts";
import { numberIn, readKernelFile } from "./kernel-file.ts";
import { isAnonymousDevice, mountedDevice } from "./mount-table.ts";
import { readPressureStall } from "./pressure-stall.ts";

/** Tasks of the node, and how many there may be. */
export interface TaskCount {
  readonly running: number;
  readonly most: number;
}

/** The tasks of the node: all processes and threads; undefined if the kernel does not tell. */
export function readTasks(): TaskCount | undefined {
  const running = Number(/^\S+ \S+ \S+ \d+\/(\d+)/.exec(readKernelFile("/proc/loadavg") ?? "")?.[1]);
  const limits = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"].map((path) => numberIn(path) ?? Infinity);
  const most = Math.min(...limits);
  return Number.isFinite(running) && Number.isFinite(most) ? { running, most } : undefined;
}

/** Bytes of swap of the node. */
export function readSwap(): { readonly total: number; readonly free: number } {
  const text = readKernelFile("/proc/meminfo") ?? "";
  const bytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { total: bytes("SwapTotal"), free: bytes("SwapFree") };
}

/** When the machine was started, in wall-clock milliseconds; 0 if the kernel does not tell. */
export function readBootTime(): number {
  return Number(/^btime (\d+)$/m.exec(readKernelFile("/proc/stat") ?? "")?.[1] ?? 0) * 1000;
}

/** Pressure of the node as a whole; undefined where the kernel has no PSI. */
export function readNodeStall(resource: "cpu" | "memory" | "io"): PressureStall | undefined {
  return readPressureStall(`/proc/pressure/${resource}`);
}

/** The interfaces of a process's network namespace, or of the agent's own; undefined if the process is gone. */
export function readInterfaces(pid: number | "self"): readonly InterfaceUsage[] | undefined {
  const text = readKernelFile(`/proc/${pid}/net/dev`);
  return text === undefined ? undefined : parseInterfaces(text);
}

/** Interfaces that do not count, as in cAdvisor: the loopback and the host's ends of containers' interfaces. */
const IGNORED = /^(lo|veth|docker|nerdctl)/;

/** Parses /proc/net/dev. */
export function parseInterfaces(text: string): readonly InterfaceUsage[] {
  return text
    .split("\n")
    .slice(2)
    .flatMap((line) => {
      const [name = "", numbers = ""] = line.split(":");
      const values = numbers.trim().split(/\s+/).map(Number);
      if (name.trim() === "" || IGNORED.test(name.trim()) || values.length < 12) return [];
      const [rxBytes = 0, rxPackets = 0, rxErrors = 0, rxDropped = 0] = values;
      const [txBytes = 0, txPackets = 0, txErrors = 0, txDropped = 0] = values.slice(8);
      const received = { rxBytes, rxPackets, rxErrors, rxDropped };
      return [{ name: name.trim(), ...received, txBytes, txPackets, txErrors, txDropped }];
    });
}

/**
 * Space of filesystems by a path on them. A call that hangs (a dead disk, a network filesystem below the root
 * directory) is never repeated while it does, so that it holds one thread and no more; meanwhile the space is unknown.
 */
export class SpaceReader {
  private readonly pending = new Map<string, Promise<FilesystemSpace | undefined>>();

  /** Undefined if it cannot be read, or if an earlier call still hangs. */
  async read(path: string): Promise<FilesystemSpace | undefined> {
    const known = this.pending.get(path);
    if (known !== undefined) return known;
    const call = readSpace(path).finally(() => this.pending.delete(path));
    this.pending.set(path, call);
    return call;
  }
}

async function readSpace(path: string): Promise<FilesystemSpace | undefined> {
  try {
    // One after the other: a filesystem that hangs holds one thread.
    const { dev } = await stat(path);
    const device = isAnonymousDevice(dev) ? ((await deviceAt(path)) ?? dev) : dev;
    const { blocks, bavail, bfree, bsize, files, ffree } = await statfs(path);
    return {
      device,
      capacityBytes: blocks * bsize,
      availableBytes: bavail * bsize,
      usedBytes: (blocks - bfree) * bsize,
      inodes: files,
      inodesFree: ffree,
    };
  } catch {
    return undefined;
  }
}

/** Each subvolume of a btrfs has a number of its own, and is no filesystem of its own. */
async function deviceAt(path: string): Promise<number | undefined> {
  return mountedDevice(readFileSync("/proc/self/mountinfo", "latin1"), await realpath(path));
}
