import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "../../lib/errors.ts";
import { cgroupsIn } from "../host/cgroups.ts";

/** How often processes are listed that appeared while others were killed, where the kernel does not stop them forking. */
const ROUNDS = 5;

/**
 * Kills every process in a cgroup and below it, in all these hierarchies, and returns how many there were. Nothing in it
 * can start another one any more: a program that forks without end does not outrun it. It does not wait for their end.
 * Only for the cgroup of a pod whose containers the runtime has stopped: what is left in it is what the runtime forgot,
 * such as a container whose creation was cancelled halfway.
 */
export function endCgroupProcesses(hierarchies: readonly string[], path: string): number {
  const directories = hierarchies.map((root) => join(root, path)).filter((directory) => existsSync(directory));
  const list = (): Set<number> => new Set(directories.flatMap(pidsBelow));
  let pids = list();
  if (pids.size === 0) return 0;
  for (const directory of directories) {
    writeIfThere(join(directory, "pids.max"), "0");
    // Version 2 from Linux 5.14 on: all at once.
    writeIfThere(join(directory, "cgroup.kill"), "1");
  }
  const killed = new Set<number>();
  for (let round = 0; round < ROUNDS && pids.size > 0; round++) {
    for (const pid of pids) if (kill(pid)) killed.add(pid);
    pids = new Set([...list()].filter((pid) => !killed.has(pid)));
  }
  return killed.size;
}

/** False if it ended meanwhile. */
function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch (error) {
    if (errnoOf(error) === "ESRCH") return false;
    throw error;
  }
}

function writeIfThere(file: string, text: string): void {
  if (!existsSync(file)) return;
  try {
    writeFileSync(file, text);
  } catch {
    // Killed one by one, then.
  }
}

/** The processes of the cgroup at a directory, and of those below it; none if it is not there. */
export function pidsBelow(directory: string): number[] {
  return [...cgroupsIn(directory).flatMap(pidsBelow), ...pidsIn(directory)];
}

function pidsIn(directory: string): number[] {
  try {
    const lines = readFileSync(join(directory, "cgroup.procs"), "latin1").split("\n");
    // Zero stands for a process outside our own pid namespace: to signal it would mean our own group.
    return lines.map(Number).filter((pid) => pid > 0);
  } catch {
    // Gone, or a threaded cgroup, whose processes its parent shows.
    return [];
  }
}
