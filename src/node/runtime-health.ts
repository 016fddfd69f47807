import type { RuntimeStatus } from "../adapters/runtime/port.ts";
import type { Clock } from "../lib/clock.ts";

/** A runtime without a good Status answer for this long is down, as in Kubernetes, in milliseconds. */
const DOWN_AFTER_MS = 30_000;

/**
 * Judges the container runtime by its Status answers. A call that fails or is too slow changes nothing by itself: the
 * runtime is down only when no good answer came for 30 s. What a runtime reports as not ready counts at once.
 */
export class RuntimeHealth {
  private last: RuntimeStatus | undefined;
  /** Monotonic time of the last answer with a ready runtime. */
  private readyAt: number | undefined;

  constructor(private readonly clock: Clock) {}

  /** The last answer; undefined before the first. */
  get status(): RuntimeStatus | undefined {
    return this.last;
  }

  /** Records an answer, or undefined for a call that failed. */
  record(status: RuntimeStatus | undefined): void {
    if (status === undefined) return;
    this.last = status;
    if (status.ready) this.readyAt = this.clock.now().mono;
  }

  /** Returns what keeps the node from being ready, in the words of Kubernetes. */
  problems(): readonly string[] {
    const { last, readyAt } = this;
    const found: string[] = [];
    if (readyAt === undefined) found.push("container runtime status check may not have completed yet");
    else if (this.clock.now().mono - readyAt >= DOWN_AFTER_MS) found.push("container runtime is down");
    if (last !== undefined && !last.ready) found.push(`container runtime not ready: ${last.message}`);
    else if (last !== undefined && !last.networkReady)
      found.push(`container runtime network not ready: ${last.message}`);
    return found;
  }
}
