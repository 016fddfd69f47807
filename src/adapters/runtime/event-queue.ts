import type { RuntimeEvent } from "./port.ts";

/** More than a reader ever leaves waiting; past it, listing everything is cheaper than reading on. */
const MOST_WAITING = 4096;

/** Events between the connection and its reader. A reader that falls far behind gets one `resync` in their place. */
export class EventQueue {
  private waiting: RuntimeEvent[] = [];
  private wake: (() => void) | undefined;

  push(event: RuntimeEvent): void {
    if (this.waiting.length >= MOST_WAITING) this.waiting = [{ kind: "resync" }];
    // A list that is still to be made covers all that happened before it.
    else if (event.kind === "resync") this.waiting = [event];
    else this.waiting.push(event);
    this.wake?.();
  }

  /** Yields what comes, in order, until the signal aborts. One reader only. */
  async *read(signal: AbortSignal): AsyncGenerator<RuntimeEvent, void, undefined> {
    const onAbort = (): void => this.wake?.();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      while (!signal.aborted) {
        const event = this.waiting.shift();
        if (event !== undefined) yield event;
        else await new Promise<void>((resolve) => (this.wake = resolve));
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
