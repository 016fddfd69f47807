import { type Dir, opendirSync, readlinkSync, statSync } from "node:fs";
import type { ProcessCounts } from "../../model/usage.ts";
import { numberIn, type ReadFile, readKernelFile } from "../host/kernel-file.ts";

/** Descriptors of one cgroup whose kind is looked at, and processes whose descriptors are counted. */
interface Bounds {
  readonly links: number;
  readonly processes: number;
}
/** A container may have any number of them. */
const OF_CONTAINER: Bounds = { links: 512, processes: 256 };
/** The processes of the system itself: there is one such cgroup. */
const OF_ROOT: Bounds = { links: 4096, processes: 1024 };

/**
 * Counts the processes of a cgroup itself and what they have open. Past a bound descriptors are only counted, not told
 * apart: sockets beyond it are missing. Undefined if there is no such cgroup.
 */
export function countProcesses(
  cpu: string | undefined,
  pids: string | undefined,
  { isRoot, read = readKernelFile }: { readonly isRoot: boolean; readonly read?: ReadFile } = { isRoot: false },
): ProcessCounts | undefined {
  const bounds = isRoot ? OF_ROOT : OF_CONTAINER;
  const text = cpu && read(`${cpu}/cgroup.procs`);
  if (text === undefined) return undefined;
  const ids = text.split("\n").filter((line) => line !== "");
  const open = { descriptors: 0, sockets: 0, links: 0 };
  for (const pid of ids.slice(0, bounds.processes)) countOpen(pid, open, bounds);
  const first = ids[0];
  const openFiles = first === undefined ? undefined : softLimit(readKernelFile(`/proc/${first}/limits`) ?? "");
  return {
    processes: ids.length,
    descriptors: open.descriptors,
    sockets: open.sockets,
    threads: (pids && numberIn(`${pids}/pids.current`, read)) || 0,
    mostThreads: (pids && numberIn(`${pids}/pids.max`, read)) || 0,
    ...(openFiles !== undefined && { openFiles }),
  };
}

/** The soft limit of open files in /proc/PID/limits; -1 is unlimited. */
export function softLimit(limits: string): number | undefined {
  const soft = /^Max open files\s+(\S+)/m.exec(limits)?.[1];
  if (soft === undefined) return undefined;
  return soft === "unlimited" ? -1 : Number(soft);
}

function countOpen(
  pid: string,
  open: { descriptors: number; sockets: number; links: number },
  { links: most }: Bounds,
): void {
  const path = `/proc/${pid}/fd`;
  let directory: Dir | undefined;
  try {
    // Since Linux 6.2 the size of the directory is their number.
    const known = statSync(path).size;
    if (known > 0 && open.links >= most) {
      open.descriptors += known;
      return;
    }
    directory = opendirSync(path);
    let seen = 0;
    for (; open.links < most; seen++) {
      const entry = directory.readSync();
      if (entry === null) break;
      open.links++;
      if (isSocket(`${path}/${entry.name}`)) open.sockets++;
    }
    open.descriptors += Math.max(known, seen);
  } catch {
    // The process is gone.
  } finally {
    directory?.closeSync();
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket");
  } catch {
    return false;
  }
}
