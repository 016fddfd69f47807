import type { StoreEvent } from "./history.ts";

/** A watcher that is so many events behind, or so many bytes of them, is ended: it can go on from its last revision. */
const MOST_WAITING = 2000;
const MOST_BYTES = 8 << 20;

/**
 * The events of one watch, taken in batches. Ends when it is closed, or when nobody takes what comes. Its reader is
 * called by the publisher itself: a promise for each watch would cost more than the event.
 */
export class EventQueue {
  private waiting: StoreEvent[] = [];
  private bytes = 0;
  private isOver = false;
  private reader: (() => void) | undefined;

  constructor(
    backlog: readonly StoreEvent[],
    private readonly onClose: () => void,
  ) {
    this.waiting.push(...backlog);
  }

  push(event: StoreEvent): void {
    if (this.isOver) return;
    this.waiting.push(event);
    this.bytes += event.object.text.length;
    // One event alone may be larger.
    const isFull = this.bytes > MOST_BYTES && this.waiting.length > 1;
    if (isFull || this.waiting.length > MOST_WAITING) this.close();
  }

  /** Sets the one who is called when there is something to take, and at the end. It must not throw. */
  onReady(reader: () => void): void {
    this.reader = reader;
  }

  /** Calls the reader if there is something to take; by the publisher, after all changes of a batch. */
  flush(): void {
    if (this.waiting.length > 0) this.reader?.();
  }

  /** True once it ended. What came before is still taken. */
  get isClosed(): boolean {
    return this.isOver;
  }

  /** What has come since the last call, at once. */
  take(): readonly StoreEvent[] {
    const taken = this.waiting;
    if (taken.length > 0) this.waiting = [];
    this.bytes = 0;
    return taken;
  }

  /** May be repeated. */
  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.onClose();
    this.reader?.();
  }
}
