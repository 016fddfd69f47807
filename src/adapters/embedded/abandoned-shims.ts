import { readlinkSync, unlinkSync } from "node:fs";
import type { Layout } from "./layout.ts";
import { shimSocketPath } from "./leftovers.ts";
import { listProcesses, ownProcesses, type ProcessInfo, signalProcess } from "./processes.ts";

/**
 * Orphaned shims. A request that is cancelled at the wrong moment, because its agent was killed, makes
 * containerd 1.6 lose track of a shim that it has just started: it never gets a container, and its bundle, in which it was
 * started, is gone. A shim in use has a child; one that starts has its bundle. Pure but for `directoryOf`.
 */
export function abandonedShims(
  all: readonly ProcessInfo[],
  layout: Layout,
  directoryOf: (pid: number) => string,
): readonly ProcessInfo[] {
  const parents = new Set(all.map(({ parent }) => parent));
  const { shims } = ownProcesses(all, layout);
  return shims.filter(({ pid }) => !parents.has(pid) && directoryOf(pid).endsWith(" (deleted)"));
}

/** Ends them, with their sockets. Returns how many there were; may be repeated. */
export function endAbandonedShims(layout: Layout): number {
  const abandoned = abandonedShims(listProcesses(), layout, workingDirectory);
  for (const shim of abandoned) {
    signalProcess(shim, "SIGKILL");
    try {
      unlinkSync(shimSocketPath(layout, shim));
    } catch {
      // It took its socket along, or has it elsewhere.
    }
  }
  return abandoned.length;
}

function workingDirectory(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // It has just ended.
    return "";
  }
}
