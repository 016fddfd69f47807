import type { Clock, Timer } from "../../lib/clock.ts";

/** Milliseconds by which a check may be early: timers count whole ones. */
const EARLY_MS = 1;

/** One timer for the checks of all logs: a check takes microseconds, less than a timer of its own would. */
export class CheckSchedule {
  private readonly due = new Map<() => void, number>();
  private timer: Timer | undefined;
  private firesAt = Number.POSITIVE_INFINITY;
  private isRunning = false;

  constructor(private readonly clock: Clock) {}

  /** Calls `check` once after `ms`, never synchronously, in place of the call that was scheduled for it before. */
  set(check: () => void, ms: number): void {
    const { mono } = this.clock.now();
    this.due.set(check, mono + ms);
    if (!this.isRunning && mono + ms < this.firesAt) this.arm(mono, mono + ms);
  }

  cancel(check: () => void): void {
    this.due.delete(check);
    if (this.due.size === 0) this.disarm();
  }

  private arm(now: number, at: number): void {
    this.timer?.cancel();
    this.firesAt = at;
    this.timer = this.clock.after(at - now, () => this.run());
  }

  private disarm(): void {
    this.timer?.cancel();
    this.firesAt = Number.POSITIVE_INFINITY;
  }

  private run(): void {
    const { mono } = this.clock.now();
    const ready: (() => void)[] = [];
    for (const [check, at] of this.due) if (at <= mono + EARLY_MS) ready.push(check);
    this.isRunning = true;
    try {
      // One of them may cancel another.
      for (const check of ready) if (this.due.delete(check)) check();
    } finally {
      this.isRunning = false;
      this.disarm();
      const next = Math.min(...this.due.values());
      if (this.due.size > 0) this.arm(this.clock.now().mono, next);
    }
  }
}
