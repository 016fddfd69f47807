import type { Clock, Timer } from "./clock.ts";

/** Lets a loop sleep until it is woken; a wake-up while it works is not lost. */
export class Wakes {
  private isWoken = false;
  private resume: (() => void) | undefined;

  constructor(private readonly clock: Clock) {}

  wake(): void {
    this.isWoken = true;
    this.resume?.();
  }

  /** Begins a new pass: it covers every wake-up before it. */
  clear(): void {
    this.isWoken = false;
  }

  /** Sleeps until the next wake-up, the abort or `ms`; returns at once if it was woken since the last sleep. */
  async sleep(ms: number | undefined, signal: AbortSignal): Promise<void> {
    if (!this.isWoken && !signal.aborted) await this.pause(ms, signal);
    this.isWoken = false;
  }

  private pause(ms: number | undefined, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const done = (): void => {
        timer?.cancel();
        signal.removeEventListener("abort", done);
        this.resume = undefined;
        resolve();
      };
      this.resume = done;
      signal.addEventListener("abort", done, { once: true });
      if (ms !== undefined) timer = this.clock.after(ms, done);
    });
  }
}
