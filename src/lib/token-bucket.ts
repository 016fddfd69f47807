import type { Abortable } from "./abort.ts";
import type { Clock, Timer } from "./clock.ts";
import type { Live } from "./live.ts";

export interface TokenBucketOptions {
  /** Tokens that come back a second; 0 or less means no limit. */
  readonly qps: number;
  /** The most that can be saved up; at least 1 counts. */
  readonly burst: number;
}

export interface TakeOptions extends Abortable {
  /** Called with the number of waiters ahead, at first and at each change, while this one waits. */
  readonly onAhead?: (ahead: number) => void;
}

interface Taker {
  readonly give: () => void;
  readonly onAhead: ((ahead: number) => void) | undefined;
}

/** Limits a rate, with a burst. Waiters are served first come first served. Starts full. */
export class TokenBucket {
  private tokens: number | undefined;
  private filledAt = 0;
  private timer: Timer | undefined;
  private readonly takers: Taker[] = [];

  constructor(
    private readonly clock: Clock,
    private readonly options: Live<TokenBucketOptions>,
  ) {}

  /** Takes a token if one is available and there is no waiter; never blocks. */
  tryTake(): boolean {
    if (this.isUnlimited()) return true;
    this.fill();
    if (this.takers.length > 0 || (this.tokens ?? 0) < 1) return false;
    this.tokens = (this.tokens ?? 0) - 1;
    return true;
  }

  /** Resolves with a token; rejects with the signal's reason when it aborts first, and then takes none. */
  take({ signal, onAhead }: TakeOptions): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason as Error);
      if (this.tryTake()) return resolve();
      const onAbort = (): void => {
        this.takers.splice(this.takers.indexOf(taker), 1);
        if (this.takers.length === 0) this.stopTimer();
        reject(signal.reason as Error);
        this.announce();
      };
      const taker: Taker = {
        give: () => {
          signal.removeEventListener("abort", onAbort);
          resolve();
        },
        onAhead,
      };
      signal.addEventListener("abort", onAbort, { once: true });
      this.takers.push(taker);
      this.serve();
      if (this.takers.includes(taker)) onAhead?.(this.takers.length - 1);
    });
  }

  private isUnlimited(): boolean {
    return this.options.current.qps <= 0;
  }

  private fill(): void {
    const { qps } = this.options.current;
    const burst = Math.max(1, this.options.current.burst);
    const now = this.clock.now().mono;
    const grown = this.tokens === undefined ? burst : this.tokens + ((now - this.filledAt) * qps) / 1000;
    this.tokens = Math.min(burst, grown);
    this.filledAt = now;
  }

  private serve(): void {
    this.stopTimer();
    const unlimited = this.isUnlimited();
    if (!unlimited) this.fill();
    const before = this.takers.length;
    while (this.takers.length > 0 && (unlimited || (this.tokens ?? 0) >= 1)) {
      if (!unlimited) this.tokens = (this.tokens ?? 0) - 1;
      this.takers.shift()?.give();
    }
    if (this.takers.length < before) this.announce();
    if (this.takers.length === 0) return;
    // At most a second at a time, so that a raised rate is noticed without a listener of its own.
    const missingMs = ((1 - (this.tokens ?? 0)) * 1000) / this.options.current.qps;
    this.timer = this.clock.after(Math.min(1000, Math.max(1, Math.ceil(missingMs))), () => this.serve());
  }

  private announce(): void {
    for (const [ahead, { onAhead }] of this.takers.entries()) onAhead?.(ahead);
  }

  private stopTimer(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }
}
