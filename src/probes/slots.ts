import type { Abortable } from "../lib/abort.ts";
import type { Clock, Instant, Timer } from "../lib/clock.ts";

/** Probes that are due within this time run together: a wake-up costs more than a probe. */
const SLOT_MS = 100;

interface Slot {
  readonly calls: Set<Call>;
  drop(call: Call): void;
}

/** One call of a slot and its own handle, to save an allocation per probe. */
class Call implements Timer {
  constructor(
    readonly fn: () => void,
    private readonly drop: (call: Call) => void,
  ) {}

  cancel(): void {
    this.drop(this);
  }
}

/**
 * A clock whose timers are rounded up to multiples of 100 ms and share one timer of the underlying clock per multiple.
 * Hundreds of probes a second then cost a few wake-ups.
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
    const { calls, drop } = this.slots.get(slot) ?? this.open(slot, slot - mono);
    const call = new Call(fn, drop);
    calls.add(call);
    return call;
  }

  sleep(ms: number, { signal }: Partial<Abortable> = {}): Promise<void> {
    return this.clock.sleep(ms, signal === undefined ? {} : { signal });
  }

  private open(slot: number, ms: number): Slot {
    const calls = new Set<Call>();
    const timer = this.clock.after(ms, () => this.fire(slot));
    const drop = (call: Call): void => {
      // The last call of the slot was cancelled: an idle agent is not woken. A firing slot is no longer in the map.
      if (!calls.delete(call) || calls.size > 0 || this.slots.get(slot)?.calls !== calls) return;
      timer.cancel();
      this.slots.delete(slot);
    };
    const opened: Slot = { calls, drop };
    this.slots.set(slot, opened);
    return opened;
  }

  private fire(slot: number): void {
    const due = this.slots.get(slot);
    this.slots.delete(slot);
    for (const { fn } of due?.calls ?? []) fn();
  }
}
