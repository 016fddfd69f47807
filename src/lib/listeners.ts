import type { Abortable } from "./abort.ts";

/** Callbacks for one kind of event; each is called until its signal aborts. The same function may be added twice. */
export class Listeners<T = void> {
  private readonly entries = new Set<{ readonly fn: (value: T) => void }>();

  /** Calls `fn` at each event until the signal aborts. */
  add(fn: (value: T) => void, { signal }: Abortable): void {
    if (signal.aborted) return;
    const entry = { fn };
    this.entries.add(entry);
    signal.addEventListener("abort", () => void this.entries.delete(entry), { once: true });
  }

  /** Calls those that are added now, in the order in which they were, unless an earlier one removes them. */
  call(value: T): void {
    for (const entry of [...this.entries]) if (this.entries.has(entry)) entry.fn(value);
  }
}
