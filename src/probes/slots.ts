import type { Abortable } from "../lib/abort.ts";
import type { Clock, Instant, Timer } from "../lib/clock.ts";

/** Probes that are due within this time run together: waking up costs more than a probe does. */
const SLOT_MS = 100;

interface Slot {
  readonly calls: Set<() => void>;
  readonly timer: Timer;
}

/**
 * A clock whose timers fire only at multiples of 100 ms, at the first that is not too early, all of a slot together and
 * with one timer of the clock below. Hundreds of probes a second then cost a few wake-ups.
 */
export class SlotClock implements Clock {
  private readonly slots = new Map<number, Slot>();

  constructor(private readonly clock: Clock) {}

  now(): Instant {
    return this.clock.now();
  }

  after(ms: number, fn: () => void): Timer {
    const { mono } = this.clock.now();
    const slot = Math.ceil((mono + Math.max(0, ms)) / SLOT_MS) * SLOT_MS;
    const { calls } = this.slots.get(slot) ?? this.open(slot, slot - mono);
    const call = (): void => fn();
    calls.add(call);
    return {
      cancel: () => {
        if (calls.delete(call) && calls.size === 0) this.close(slot);
      },
    };
  }

  sleep(ms: number, { signal }: Partial<Abortable> = {}): Promise<void> {
    return this.clock.sleep(ms, signal === undefined ? {} : { signal });
  }

  private open(slot: number, ms: number): Slot {
    const opened: Slot = { calls: new Set(), timer: this.clock.after(ms, () => this.fire(slot)) };
    this.slots.set(slot, opened);
    return opened;
  }

  /** Nobody waits any more: an idle agent is not woken. */
  private close(slot: number): void {
    this.slots.get(slot)?.timer.cancel();
    this.slots.delete(slot);
  }

  private fire(slot: number): void {
    const due = this.slots.get(slot);
    this.slots.delete(slot);
    for (const call of due?.calls ?? []) call();
  }
}
