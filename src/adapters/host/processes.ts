import { readFileSync } from "node:fs";
import { errnoOf } from "../../lib/errors.ts";

/** A process that is known for sure: pids are used again, start times (in clock ticks since boot) are not. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTime: string;
}

interface ProcessStat {
  readonly state: string;
  readonly startTime: string;
}

/** When a process started, in clock ticks since boot; undefined when there is none of that pid. */
export function processStartTime(pid: number): string | undefined {
  return readStat(pid)?.startTime;
}

/** True while this very process runs; one that has ended and is not yet collected does not count. */
export function isAlive({ pid, startTime }: ProcessIdentity): boolean {
  const stat = readStat(pid);
  return stat !== undefined && stat.startTime === startTime && stat.state !== "Z" && stat.state !== "X";
}

/** Signals this very process; false when it is gone. Other failures are thrown. */
export function killProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch (error) {
    if (errnoOf(error) === "ESRCH") return false;
    throw error;
  }
}

/** The words a process was started with, for messages; empty when it is gone. */
export function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
}

function readStat(pid: number): ProcessStat | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined;
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch (error) {
    const code = errnoOf(error);
    if (code === "ENOENT" || code === "ESRCH") return undefined;
    throw error;
  }
}

/** Fields of /proc/PID/stat; the name in brackets may itself contain blanks and brackets. */
export function parseStat(text: string): ProcessStat | undefined {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, startTime] = [fields[0], fields[19]];
  return state === undefined || startTime === undefined ? undefined : { state, startTime };
}
