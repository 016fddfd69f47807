import type { Abortable } from "./abort.ts";
import type { Clock } from "./clock.ts";

export interface WorkPaceOptions {
  /** What one piece of work costs at least, and for each item in it, in milliseconds: that much later the next may begin. */
  readonly pieceMs: number;
  readonly itemMs: number;
  /** Work that may be ahead of its time, in milliseconds. */
  readonly burstMs: number;
}

interface Debt {
  readonly ms: number;
  readonly at: number;
}

/**
 * Paces work that others send, by who sends it and how much it is: a few small pieces are done at once, large or many
 * ones wait. What somebody owes outlives its connection: to connect again does not help.
 */
export class WorkPace {
  private readonly debts = new Map<string, Debt>();

  constructor(
    private readonly clock: Clock,
    private readonly options: WorkPaceOptions,
  ) {}

  /** Resolves when the next piece of work of the sender may be done; rejects if the signal aborts first. */
  async turn(sender: string, { signal }: Abortable): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      if (this.isDue(sender)) return;
      await this.clock.sleep(this.owed(sender) - this.options.burstMs, { signal });
    }
  }

  /** True if the next piece of work of the sender may be done now. */
  isDue(sender: string): boolean {
    return this.owed(sender) <= this.options.burstMs;
  }

  /** Notes that a piece of work with so many items was done. */
  spend(sender: string, items: number): void {
    const { pieceMs, itemMs } = this.options;
    const ms = this.owed(sender) + Math.max(pieceMs, items * itemMs);
    this.debts.set(sender, { ms, at: this.clock.now().mono });
    for (const other of this.debts.keys()) if (this.owed(other) === 0) this.debts.delete(other);
  }

  private owed(sender: string): number {
    const debt = this.debts.get(sender);
    return debt === undefined ? 0 : Math.max(0, debt.ms - (this.clock.now().mono - debt.at));
  }
}
