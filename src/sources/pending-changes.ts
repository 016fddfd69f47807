import type { Clock } from "../lib/clock.ts";

/** A change that a watch delivered; the name is empty for `rescan`. */
export interface WatchChange {
  readonly kind: "removed" | "appeared" | "changed" | "rescan";
  readonly name: string;
}

/** The changes since the last scan. A removed name is also touched: it may be back. */
export interface ChangeBatch {
  readonly removed: ReadonlySet<string>;
  readonly touched: ReadonlySet<string>;
  readonly rescan: boolean;
}

/** Collects changes while the loop is busy, and wakes it. */
export class PendingChanges {
  private removed = new Set<string>();
  private touched = new Set<string>();
  private rescan = false;
  private wake: () => void = () => undefined;

  add(change: WatchChange): void {
    if (change.kind === "rescan") this.rescan = true;
    else this.touched.add(change.name);
    if (change.kind === "removed") this.removed.add(change.name);
    this.wake();
  }

  /** Returns the changes and clears them. */
  take(): ChangeBatch {
    const batch = { removed: this.removed, touched: this.touched, rescan: this.rescan };
    this.removed = new Set();
    this.touched = new Set();
    this.rescan = false;
    return batch;
  }

  /** Resolves at the next change, at once if there is one, and after `ms` with a rescan. Rejects on abort. */
  async wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.rescan || this.touched.size > 0) return;
    let onAbort = (): void => undefined;
    const timer = clock.after(ms, () => this.add({ kind: "rescan", name: "" }));
    try {
      await new Promise<void>((resolve, reject) => {
        this.wake = resolve;
        onAbort = () => reject(signal.reason as Error);
        signal.addEventListener("abort", onAbort, { once: true });
      });
    } finally {
      timer.cancel();
      this.wake = () => undefined;
      signal.removeEventListener("abort", onAbort);
    }
  }
}
