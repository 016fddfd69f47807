import type { Clock, Timer } from "../lib/clock.ts";

/** Checks that run at one time, at most: a few times as many would use up the rate limit of API requests. */
const MOST_AT_ONCE = 25;
/** Main slots in an interval. */
const SLOTS = 9;
/** Slots from one main slot to the next, for what does not fit into those. */
const SPARE_SLOTS = 10;

interface Slot {
  readonly timer: Timer;
  readonly checks: Set<() => void>;
}

/**
 * The times at which volumes are checked: several together, because a request that comes alone wakes the whole process and
 * costs two to three times as much as one of many, and not all together, because the API server has other nodes to serve.
 *
 *     ├─┬─┬─┬─┬─┬─┬─┬─┬─┬─┤    the slot at or before the due time; if it is full, the one before it
 *     main                main
 */
export class CheckSlots {
  /** By their monotonic times. */
  private readonly slots = new Map<number, Slot>();

  constructor(private readonly clock: Clock) {}

  /** Calls `check` once, at the last slot with room of the next `withinMs`; slots are those of the interval `everyMs`. */
  book(check: () => void, { withinMs, everyMs }: { readonly withinMs: number; readonly everyMs: number }): Timer {
    const now = this.clock.now().mono;
    const at = this.find(now, now + withinMs, everyMs / SLOTS);
    const slot = this.slots.get(at) ?? this.open(at, now);
    slot.checks.add(check);
    return { cancel: () => this.leave(at, slot, check) };
  }

  private find(now: number, due: number, mainMs: number): number {
    const spareMs = mainMs / SPARE_SLOTS;
    // Counted in whole slots, so that the same slot always has the same time.
    for (let slot = Math.floor(due / mainMs) * SPARE_SLOTS; slot * spareMs > now; slot--) {
      if ((this.slots.get(slot * spareMs)?.checks.size ?? 0) < MOST_AT_ONCE) return slot * spareMs;
    }
    return due;
  }

  private open(at: number, now: number): Slot {
    const checks = new Set<() => void>();
    const timer = this.clock.after(at - now, () => {
      this.slots.delete(at);
      for (const check of checks) check();
    });
    const slot = { timer, checks };
    this.slots.set(at, slot);
    return slot;
  }

  private leave(at: number, slot: Slot, check: () => void): void {
    slot.checks.delete(check);
    if (slot.checks.size > 0 || this.slots.get(at) !== slot) return;
    slot.timer.cancel();
    this.slots.delete(at);
  }
}
