import type { Abortable } from "./abort.ts";

/** Runs work one at a time per key, first come first served; different keys run side by side. */
export class KeyedMutex {
  /** Resolves when everything that was queued for a key so far has ended. Never rejects. */
  private readonly tails = new Map<string, Promise<void>>();

  /** Rejects with the signal's reason if it aborts while this waits for its turn; `work` is not called then. */
  async run<T>(key: string, work: () => Promise<T>, { signal }: Abortable): Promise<T> {
    signal.throwIfAborted();
    const before = this.tails.get(key);
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const tail = before === undefined ? held : before.then(() => held);
    this.tails.set(key, tail);
    // Only once the turns before are over as well: a waiter that gave up does not let others pass.
    void tail.then(() => {
      if (this.tails.get(key) === tail) this.tails.delete(key);
    });
    try {
      if (before !== undefined) await turn(before, signal);
      return await work();
    } finally {
      release();
    }
  }

  /** Keys that are locked or waited for. */
  get size(): number {
    return this.tails.size;
  }
}

function turn(before: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error); // reason: aborts of this project carry errors
    signal.addEventListener("abort", onAbort, { once: true });
    void before.then(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
  });
}
