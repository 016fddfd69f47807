import { spawn } from "node:child_process";
import { accessSync, closeSync, constants, mkdirSync, openSync, readFileSync, renameSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { writeAtomic } from "../../lib/atomic-file.ts";
import { cgroupHierarchies, makeCgroup } from "./cgroups.ts";
import { EmbeddedError } from "./embedded-error.ts";
import type { EmbeddedHost } from "./host.ts";
import type { Layout } from "./layout.ts";
import { isOnHost, listProcesses, ownProcesses, type ProcessInfo, readProcess } from "./processes.ts";

/** What is remembered of a running containerd. Pid and start time together never name another process. */
export interface DaemonRecord {
  readonly pid: number;
  readonly startTime: number;
  readonly bootId: string;
  /** `containerd --version` of the binary that was started. */
  readonly version: string;
}

/** Our log is moved aside at a start when it is over this many bytes (10 MiB). */
const ROTATE_OVER = 10 * 1024 * 1024;

/** Joins the cgroups given before `--` (those that refuse are passed over), then becomes the command after it. */
const JOIN_AND_EXEC = `while [ "$1" != -- ]; do echo $$ 2>/dev/null >"$1/cgroup.procs" || :; shift; done; shift; exec "$@"`;

/** The containerd of this state directory, if it runs; found by its record or, where that was lost, by its command line. */
export function findDaemon(layout: Layout): { process: ProcessInfo; record?: DaemonRecord } | undefined {
  const record = readRecord(layout);
  if (record !== undefined) {
    const process = readProcess(record.pid);
    if (process !== undefined && process.startTime === record.startTime && record.bootId === bootId()) {
      return { process, record };
    }
  }
  const process = ownProcesses(listProcesses(), layout).containerd.find(({ pid }) => isOnHost(pid));
  return process === undefined ? undefined : { process };
}

/**
 * Starts containerd so that nothing of ours can take it along: a session of its own, output straight into a file, a
 * cgroup of its own, no descriptor and no notification socket of ours.
 */
export async function startDaemon(
  host: Pick<EmbeddedHost, "mountTable">,
  layout: Layout,
  { binary, version }: { binary: string; version: string },
): Promise<DaemonRecord> {
  mkdirSync(layout.runDir, { recursive: true, mode: 0o711 });
  const cgroups = makeCgroup(cgroupHierarchies(host.mountTable()), layout.runtimeCgroup);
  rotateLog(layout.logFile);
  const log = openSync(layout.logFile, "a", 0o600);
  try {
    const command = [...cgroups, "--", binary, "--config", layout.configFile];
    const child = spawn("/bin/sh", ["-c", JOIN_AND_EXEC, "sh", ...command], {
      cwd: "/",
      detached: true,
      stdio: ["ignore", log, log],
      env: daemonEnvironment(process.env, dirname(binary)),
    });
    await new Promise<void>((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => reject(new EmbeddedError("StartFailed", error.message, { cause: error })));
    });
    child.on("error", () => undefined);
    child.unref();
    const pid = child.pid ?? 0;
    return await writeRecord(layout, { process: { pid, startTime: readProcess(pid)?.startTime ?? 0 }, version });
  } finally {
    closeSync(log);
  }
}

/** Persists what is remembered of a running containerd. */
export async function writeRecord(
  layout: Layout,
  { process: { pid, startTime }, version }: { process: Pick<ProcessInfo, "pid" | "startTime">; version: string },
): Promise<DaemonRecord> {
  const record = { pid, startTime, bootId: bootId(), version };
  await writeAtomic(layout.recordFile, `${JSON.stringify(record)}\n`, { sync: false });
  return record;
}

/** The record of the last start, whether or not that process still runs. */
export function readRecord(layout: Layout): DaemonRecord | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(layout.recordFile, "utf8"));
    // Only `writeRecord` writes this file, as a whole.
    return value as DaemonRecord;
  } catch {
    return undefined;
  }
}

/** Names this boot of the machine: a state directory survives it, processes and mounts do not. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
}

/** A program's path, as the shell would find it (the sbin directories included, whatever PATH is). */
export function findInPath(program: string, path: string | undefined): string | undefined {
  if (program.includes("/")) return program;
  for (const directory of searchPath(path).split(delimiter)) {
    const candidate = join(directory, program);
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // Next one.
    }
  }
  return undefined;
}

/** The last lines of the log that look like a failure, for an error message. */
export function lastLogWords(layout: Layout): string {
  let text: string;
  try {
    text = readFileSync(layout.logFile, "utf8").slice(-16_384);
  } catch {
    return "";
  }
  const lines = text.split("\n").filter(Boolean);
  const failures = lines.filter((line) => !/level=(info|debug|warning)/.test(line));
  return (failures.at(-1) ?? lines.at(-1) ?? "").slice(0, 500);
}

/**
 * systemd's readiness and socket hand-over are the agent's own; containerd must not answer for it. The shim that
 * stands beside the binary goes before any other.
 */
function daemonEnvironment(own: NodeJS.ProcessEnv, binaryDir: string): NodeJS.ProcessEnv {
  const { NOTIFY_SOCKET: _1, LISTEN_FDS: _2, LISTEN_PID: _3, LISTEN_FDNAMES: _4, WATCHDOG_PID: _5, ...rest } = own;
  return { ...rest, PATH: searchPath(`${binaryDir}${delimiter}${own["PATH"] ?? ""}`) };
}

function searchPath(path: string | undefined): string {
  const all = [...(path ?? "").split(delimiter), "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  return [...new Set(all.filter(Boolean))].join(delimiter);
}

function rotateLog(file: string): void {
  try {
    if (statSync(file).size > ROTATE_OVER) renameSync(file, `${file}.1`);
  } catch {
    // No log yet.
  }
}
