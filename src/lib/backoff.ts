import type { Instant } from "./clock.ts";

export interface BackoffOptions {
  /** The first delay, in milliseconds. */
  readonly initialMs: number;
  readonly maxMs: number;
  /** What each further delay is multiplied by; defaults to 2. */
  readonly factor?: number;
  /** After this long without a new failure the next one starts at `initialMs` again; if unset, never. */
  readonly resetAfterMs?: number;
  /** Adds up to this share of the delay (0.1 = up to ten per cent more); defaults to 0. */
  readonly jitter?: number;
  /** From 0 to below 1; defaults to `Math.random`. */
  readonly random?: () => number;
}

/** Where a back-off stands: data, so that it can be shown (`next retry in …`). */
export interface BackoffState {
  /** Failures since the last reset. */
  readonly failures: number;
  /** The delay that the last failure earned, in milliseconds. */
  readonly delayMs: number;
  /** When the last failure was. */
  readonly since: Instant;
  /** Monotonic milliseconds before which nothing should be tried. */
  readonly notBefore: number;
}

/** The state after one more failure at `now`. Pure but for the injected random. */
export function nextBackoff(last: BackoffState | undefined, now: Instant, options: BackoffOptions): BackoffState {
  const { initialMs, maxMs, factor = 2, resetAfterMs = Number.POSITIVE_INFINITY, jitter = 0 } = options;
  const fresh = last === undefined || now.mono - last.notBefore >= resetAfterMs;
  const failures = fresh ? 1 : last.failures + 1;
  // The power overflows to Infinity after a thousand failures, which the cap turns into the maximum.
  const base = Math.min(maxMs, initialMs * factor ** (failures - 1));
  const delayMs = Math.min(maxMs, base * (1 + jitter * (options.random ?? Math.random)()));
  return { failures, delayMs, since: now, notBefore: now.mono + delayMs };
}

/** One growing delay. `next` records a failure and returns the delay; `reset` after a success. */
export class Backoff {
  private last: BackoffState | undefined;

  constructor(private readonly options: BackoffOptions) {}

  /** Records a failure and returns the delay before the next attempt, in milliseconds. */
  next(now: Instant): number {
    this.last = nextBackoff(this.last, now, this.options);
    return this.last.delayMs;
  }

  /** Returns the milliseconds left to wait at `now`; 0 if an attempt is due. */
  remaining(now: Instant): number {
    return Math.max(0, (this.last?.notBefore ?? 0) - now.mono);
  }

  /** What the last failure left, or undefined after a reset. */
  get state(): BackoffState | undefined {
    return this.last;
  }

  reset(): void {
    this.last = undefined;
  }
}

/** A back-off for each key. It never evicts a key by itself: call `evictOlderThan` or `reset` when a key is removed. */
export class KeyedBackoff<K> {
  private readonly states = new Map<K, BackoffState>();

  constructor(private readonly options: BackoffOptions) {}

  /** Records a failure of `key` and returns the delay before its next attempt, in milliseconds. */
  next(key: K, now: Instant): number {
    const state = nextBackoff(this.states.get(key), now, this.options);
    this.states.set(key, state);
    return state.delayMs;
  }

  get(key: K): BackoffState | undefined {
    return this.states.get(key);
  }

  /** Returns the milliseconds that `key` has left to wait at `now`; 0 if an attempt is due. */
  remaining(key: K, now: Instant): number {
    return Math.max(0, (this.states.get(key)?.notBefore ?? 0) - now.mono);
  }

  reset(key: K): void {
    this.states.delete(key);
  }

  /** Drops the keys whose wait ended more than `ageMs` ago. */
  evictOlderThan(ageMs: number, now: Instant): void {
    for (const [key, state] of this.states) if (now.mono - state.notBefore > ageMs) this.states.delete(key);
  }

  get size(): number {
    return this.states.size;
  }
}
