import { AbortedError } from "./abort.ts";

/** Handles one wake-up of a key. Its signal aborts when the queue is closed or the key is dropped. */
export type KeyHandler<K> = (key: K, signal: AbortSignal) => Promise<void>;

export interface KeyedQueueOptions<K> {
  /** Hears what a handler threw while its signal was not aborted. The key stays usable. */
  readonly onError: (key: K, error: unknown) => void;
}

interface Slot {
  readonly controller: AbortController;
  /** Woken again while the handler runs: one more run, however many wake-ups there were. */
  again: boolean;
  readonly done: Promise<void>;
}

/**
 * Runs a handler per key: one run at a time for a key, different keys side by side, wake-ups that come during
 * a run melt into one further run. A wake-up carries no facts; the handler reads the newest state itself.
 *
 *   idle ──wake──► running ──wake──► running+again ──end──► running
 *     ▲               │ end
 *     └───────────────┘
 */
export class KeyedQueue<K> {
  private readonly slots = new Map<K, Slot>();
  private closed = false;

  constructor(
    private readonly handle: KeyHandler<K>,
    private readonly options: KeyedQueueOptions<K>,
  ) {}

  /** Asks for a run that begins after this call; never runs synchronously. After `close` it does nothing. */
  wake(key: K): void {
    if (this.closed) return;
    const slot = this.slots.get(key);
    if (slot !== undefined && !slot.controller.signal.aborted) slot.again = true;
    else this.start(key, slot?.done);
  }

  /** Aborts the run of `key`, if any, and drops its wake-ups; resolves when it has ended. */
  async drop(key: K): Promise<void> {
    const slot = this.slots.get(key);
    if (slot === undefined) return;
    slot.again = false;
    slot.controller.abort(new AbortedError("dropped"));
    await slot.done;
  }

  isRunning(key: K): boolean {
    return this.slots.has(key);
  }

  get size(): number {
    return this.slots.size;
  }

  /** Resolves when nothing runs and nothing is asked for. */
  async idle(): Promise<void> {
    while (this.slots.size > 0) await Promise.all([...this.slots.values()].map((slot) => slot.done));
  }

  /** Aborts all runs and resolves when they have ended; later wake-ups are ignored. */
  async close(): Promise<void> {
    this.closed = true;
    for (const slot of this.slots.values()) {
      slot.again = false;
      if (!slot.controller.signal.aborted) slot.controller.abort(new AbortedError("queue closed"));
    }
    await this.idle();
  }

  /** A key woken again after `drop` waits for the dropped run: there are never two at once. */
  private start(key: K, previous: Promise<void> | undefined): void {
    const controller = new AbortController();
    const begin = Promise.resolve(previous);
    const slot: Slot = { controller, again: false, done: begin.then(() => this.run(key, slot)) };
    this.slots.set(key, slot);
  }

  private async run(key: K, slot: Slot): Promise<void> {
    const { signal } = slot.controller;
    try {
      do {
        slot.again = false;
        if (signal.aborted) return;
        try {
          await this.handle(key, signal);
        } catch (error) {
          if (!signal.aborted) this.options.onError(key, error);
        }
      } while (slot.again);
    } finally {
      if (this.slots.get(key) === slot) this.slots.delete(key);
    }
  }
}
