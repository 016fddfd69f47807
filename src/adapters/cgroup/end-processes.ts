import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "../../lib/errors.ts";
import { cgroupsIn } from "../host/cgroups.ts";

/**
 * Kills every process in a cgroup and below it, in all these hierarchies, and returns how many there were. It does not
 * wait for their end. Only for the cgroup of a pod whose containers the runtime has stopped: what is left in it is what
 * the runtime forgot, such as a container whose creation was cancelled halfway.
 */
export function endCgroupProcesses(hierarchies: readonly string[], path: string): number {
  const pids = new Set(hierarchies.flatMap((root) => pidsBelow(join(root, path))));
  let count = 0;
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
      count++;
    } catch (error) {
      // It ended meanwhile.
      if (errnoOf(error) !== "ESRCH") throw error;
    }
  }
  return count;
}

function pidsBelow(directory: string): number[] {
  if (!existsSync(directory)) return [];
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
