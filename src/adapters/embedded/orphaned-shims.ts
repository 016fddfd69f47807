import { readlinkSync, unlinkSync } from "node:fs";
import { basename } from "node:path";
import type { Layout } from "./layout.ts";
import { shimSocketPath } from "./leftovers.ts";
import { isOnHost, listProcesses, type ProcessInfo, sandboxOf, shimsOf, signalProcess } from "./processes.ts";

/** What the audit reads of the machine. */
export interface ShimMachine {
  /** All processes that live now. */
  list(): readonly ProcessInfo[];
  /** The working directory of a process, which for a shim is its bundle. */
  directoryOf(pid: number): string;
  /** False for processes of containers and of other users. */
  isOnHost(pid: number): boolean;
}

const MACHINE: ShimMachine = { list: listProcesses, directoryOf: workingDirectory, isOnHost };

/**
 * Finds the orphaned shims of one containerd: those that it has lost track of, and that would stay for ever. It loses
 * one that it has started and in which no container has started yet
 *
 * - when the request is cancelled because the agent was killed: the bundle, in which the shim was started, is removed;
 * - when containerd itself is killed: at its next start it loads the shim without a task, the sandbox is removed as one
 *   that is not ready, and nobody removes the shim (containerd 1.6; issue 6860 of containerd).
 *
 * A shim in use has a started container or a sandbox. One that is being started may have neither for a moment, so the
 * second kind is orphaned only if two calls in a row find it.
 */
export class ShimAudit {
  private suspects: ReadonlySet<string> = new Set();

  constructor(
    private readonly socket: string,
    private readonly machine: ShimMachine = MACHINE,
  ) {}

  /** Returns the orphaned shims. `sandboxIds`: all sandboxes of the runtime; undefined if they are unknown. */
  find(sandboxIds: ReadonlySet<string> | undefined): readonly ProcessInfo[] {
    const all = this.machine.list();
    const parents = new Set(all.filter((each) => !isUnstarted(each)).map(({ parent }) => parent));
    // A process of a container may have any command line, also one with the id of another pod.
    const shims = shimsOf(all, this.socket).filter(({ pid }) => this.machine.isOnHost(pid));
    const idle = shims.filter(({ pid }) => !parents.has(pid));
    const isUnknown = (shim: ProcessInfo): boolean => {
      const id = sandboxOf(shim);
      return id !== undefined && sandboxIds?.has(id) === false;
    };
    const before = this.suspects;
    this.suspects = new Set(idle.filter(isUnknown).map(nameOf));
    return idle.filter(
      (shim) =>
        this.machine.directoryOf(shim.pid).endsWith(" (deleted)") ||
        (before.has(nameOf(shim)) && this.suspects.has(nameOf(shim))),
    );
  }
}

/** Kills shims, and what they created and never started, with SIGKILL, and removes their sockets. May be repeated. */
export function killShims(layout: Layout, shims: readonly ProcessInfo[]): void {
  const unstarted = shims.length === 0 ? [] : listProcesses().filter(isUnstarted);
  for (const shim of shims) {
    signalProcess(shim, "SIGKILL");
    for (const child of unstarted.filter(({ parent }) => parent === shim.pid)) signalProcess(child, "SIGKILL");
    try {
      unlinkSync(shimSocketPath(layout, shim));
    } catch {
      // It took its socket along, or has it elsewhere.
    }
  }
}

/** A container that was created: runc waits in it for the start. */
function isUnstarted({ argv }: ProcessInfo): boolean {
  return argv.length === 2 && basename(argv[0] ?? "") === "runc" && argv[1] === "init";
}

/** The pid with the start time never names another process. */
function nameOf({ pid, startTime }: ProcessInfo): string {
  return `${pid} ${startTime}`;
}

function workingDirectory(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // It has just ended.
    return "";
  }
}
