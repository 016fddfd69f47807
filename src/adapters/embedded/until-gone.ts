import { connect } from "node:net";
import type { Clock } from "../../lib/clock.ts";
import type { Layout } from "./layout.ts";
import { type ProcessInfo, readProcess } from "./processes.ts";

/** A connection may end before its process does; this long after it the process is checked. */
const SETTLE_MS = 20;

/**
 * Resolves when this containerd has ended or the signal aborts. The kernel closes an idle connection to containerd's
 * second socket at that moment, so nothing has to be asked again and again; it works for adopted ones as well.
 */
export async function untilGone(
  clock: Clock,
  { process, layout }: { process: ProcessInfo; layout: Layout },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && readProcess(process.pid)?.startTime === process.startTime) {
    await connectionClosed(layout.ttrpcSocket, signal);
    // The process may still be starting, and not listen yet, or just be ending.
    await clock.sleep(SETTLE_MS, { signal }).catch(() => undefined);
  }
}

/** Resolves when a connection to this socket ends, cannot be made, or the signal aborts. */
function connectionClosed(path: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const onAbort = (): void => void socket.destroy();
    socket.on("error", () => undefined);
    socket.on("close", () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    socket.resume();
  });
}
