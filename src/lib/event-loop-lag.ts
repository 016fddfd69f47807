import type { Abortable } from "./abort.ts";
import type { Clock } from "./clock.ts";

/** How often the lag is measured, in milliseconds. */
const EVERY_MS = 5000;
/** A timer that is this late counts as lag: hundreds of callers notice it. */
const LATE_MS = 1000;
/** So many late timers one after the other are a problem that lasts. */
const LASTING = 3;

/** Notices an event loop that is late for a while: by how late a timer of its own is. */
export class EventLoopLag {
  private lateInRow = 0;
  private lateMs = 0;
  /** Monotonic time at which the timer is due; before the first there is none. */
  private dueAt: number | undefined;

  constructor(private readonly clock: Clock) {}

  /** Measures until the signal aborts. */
  async run({ signal }: Abortable): Promise<void> {
    while (!signal.aborted) {
      this.dueAt = this.clock.now().mono + EVERY_MS;
      await this.clock.sleep(EVERY_MS, { signal }).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
      this.measured(this.clock.now().mono - this.dueAt);
    }
  }

  /** What is wrong if the loop was late several times in a row; undefined if it is not. */
  problem(): string | undefined {
    if (this.lateInRow < LASTING) return undefined;
    return `the event loop is ${(this.lateMs / 1000).toFixed(1)} s late, for ${(this.lateInRow * EVERY_MS) / 1000} s or longer`;
  }

  private measured(lateMs: number): void {
    this.lateMs = lateMs;
    this.lateInRow = lateMs >= LATE_MS ? this.lateInRow + 1 : 0;
  }
}
