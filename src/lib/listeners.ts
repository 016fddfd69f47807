import type { Abortable } from "./abort.ts";

/** Callbacks for one kind of event; each is called until its signal aborts. The same function may be added twice. */
export class Listeners<T = void> {
  private readonly entries = new Set<{ readonly fn: (value: T) => void }>();

  /** `onEmpty` is called when the last one is removed. */
  constructor(private readonly onEmpty: () => void = () => undefined) {}

  get isEmpty(): boolean {
    return this.entries.size === 0;
  }

  /** Calls `fn` at each event until the signal aborts. */
  add(fn: (value: T) => void, { signal }: Abortable): void {
    if (signal.aborted) return;
    const entry = { fn };
    this.entries.add(entry);
    const remove = (): void => {
      this.entries.delete(entry);
      if (this.isEmpty) this.onEmpty();
    };
    signal.addEventListener("abort", remove, { once: true });
  }

  /** Calls those that are added now, in the order in which they were, unless an earlier one removes them. */
  call(value: T): void {
    for (const entry of [...this.entries]) if (this.entries.has(entry)) entry.fn(value);
  }
}
