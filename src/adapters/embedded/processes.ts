import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import type { Layout } from "./layout.ts";

/** A process as /proc shows it. `startTime` (clock ticks since boot) with the pid names it for ever. */
export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly startTime: number;
  readonly argv: readonly string[];
}

/** The process of this pid, or undefined when there is none or only its zombie is left. */
export function readProcess(pid: number): ProcessInfo | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may hold anything, also parentheses: count fields after the last one.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    const argv = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    argv.pop();
    return { pid, parent: Number(fields[1]), startTime: Number(fields[19]), argv };
  } catch {
    // Gone between two reads: the same as never there.
    return undefined;
  }
}

/** All processes that live now. */
export function listProcesses(): ProcessInfo[] {
  const found: ProcessInfo[] = [];
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const info = readProcess(Number(entry));
    if (info !== undefined) found.push(info);
  }
  return found;
}

/** The processes of one state directory, recognised by the paths in their command lines and their parents. */
export interface OwnProcesses {
  readonly containerd: readonly ProcessInfo[];
  readonly shims: readonly ProcessInfo[];
  /** Children of shims: the first processes of sandboxes and containers, and of exec sessions. */
  readonly inits: readonly ProcessInfo[];
  /** Everything below the shims, the inits too. */
  readonly workload: readonly ProcessInfo[];
}

/** Sorts out which of these processes are ours. Pure. */
export function ownProcesses(all: readonly ProcessInfo[], layout: Layout): OwnProcesses {
  const shims = shimsOf(all, layout.socket);
  const children = groupByParent(all);
  const shimPids = new Set(shims.map((shim) => shim.pid));
  const inits = shims.flatMap((shim) => children.get(shim.pid) ?? []).filter((child) => !shimPids.has(child.pid));
  const workload: ProcessInfo[] = [];
  const seen = new Set<number>(shimPids);
  const queue = [...inits];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (seen.has(next.pid)) continue;
    seen.add(next.pid);
    workload.push(next);
    queue.push(...(children.get(next.pid) ?? []));
  }
  // A container chooses its own command line.
  const containerd = all.filter((one) => !seen.has(one.pid) && isContainerd(one, layout));
  return { containerd, shims, inits, workload };
}

/**
 * True for our daemon: it was started with our configuration file, or is the shell that is about to become it. Its own
 * helpers have other command lines.
 */
function isContainerd({ argv }: ProcessInfo, layout: Layout): boolean {
  if (argv.at(-2) !== "--config" || argv.at(-1) !== layout.configFile) return false;
  return argv.length === 3 || (argv[0] === "/bin/sh" && argv.at(-4) === "--");
}

/**
 * True if the process belongs to the agent's user and shares its PID namespace: those of other users and of containers may
 * have any command line.
 */
export function isOnHost(pid: number): boolean {
  try {
    if (statSync(`/proc/${pid}`).uid !== process.getuid?.()) return false;
    return readlinkSync(`/proc/${pid}/ns/pid`) === readlinkSync("/proc/self/ns/pid");
  } catch {
    // It has just ended.
    return false;
  }
}

/** The shims that report to the containerd at this socket. Pure. */
export function shimsOf(all: readonly ProcessInfo[], socket: string): readonly ProcessInfo[] {
  return all.filter(({ argv }) => {
    const [command = ""] = argv;
    return /(^|\/)containerd-shim[^/]*$/.test(command) && argument(argv, "-address") === socket;
  });
}

/** The id of a shim's sandbox; undefined for a shim of another namespace than that of CRI. */
export function sandboxOf({ argv }: ProcessInfo): string | undefined {
  return argument(argv, "-namespace") === "k8s.io" ? argument(argv, "-id") : undefined;
}

function argument(argv: readonly string[], name: string): string | undefined {
  const at = argv.indexOf(name);
  return at > 0 ? argv[at + 1] : undefined;
}

function groupByParent(all: readonly ProcessInfo[]): Map<number, ProcessInfo[]> {
  const groups = new Map<number, ProcessInfo[]>();
  for (const process of all) {
    const siblings = groups.get(process.parent);
    if (siblings === undefined) groups.set(process.parent, [process]);
    else siblings.push(process);
  }
  return groups;
}

/** Sends a signal unless the pid belongs to another process by now. True when it was sent. */
export function signalProcess(target: ProcessInfo, signal: NodeJS.Signals): boolean {
  if (readProcess(target.pid)?.startTime !== target.startTime) return false;
  try {
    process.kill(target.pid, signal);
    return true;
  } catch {
    // It ended meanwhile.
    return false;
  }
}
