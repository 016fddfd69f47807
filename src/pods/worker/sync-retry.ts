import { NetworkNotReadyError } from "../execute/network.ts";

/** After an error that names no time of its own (10 s in Kubernetes, also for a passing one). */
const ERROR_RETRY_MS = { first: 1000, max: 30_000 };

/** While the network is not ready a pod is tried again this often, as in Kubernetes. */
const NETWORK_RETRY_MS = 1000;

/** The back-off of a worker's failed steps. Times are monotonic milliseconds. */
export class SyncRetry {
  private failures = 0;
  private blockedUntil = 0;

  /** How long nothing is tried yet; 0 or less means now. */
  waitMs(nowMono: number): number {
    return this.blockedUntil - nowMono;
  }

  /** A step failed; answers how long the next one waits. */
  failed(error: unknown, nowMono: number): number {
    const waitMs =
      error instanceof NetworkNotReadyError
        ? NETWORK_RETRY_MS
        : Math.min(ERROR_RETRY_MS.max, ERROR_RETRY_MS.first * 2 ** this.failures++);
    this.blockedUntil = nowMono + waitMs;
    return waitMs;
  }

  /** A step ended without an error. One that only waited for the end of the back-off says nothing. */
  succeeded(): void {
    if (this.blockedUntil === 0) this.failures = 0;
  }

  /** Ends the wait, not the back-off: something makes success more likely, or the wait is over. */
  unblock(): void {
    this.blockedUntil = 0;
  }
}
