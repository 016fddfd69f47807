import type { Abortable } from "./abortable.ts";

/** Both times of one moment, in milliseconds: `wall` for showing and comparing with the outside, `mono` for waiting. */
export interface Instant {
  readonly wall: number;
  readonly mono: number;
}

/** A pending call; cancelling one that already fired does nothing. */
export interface Timer {
  cancel(): void;
}

/** The only way to know the time or to wait. Injected, so that a test decides how time goes. */
export interface Clock {
  now(): Instant;
  /** Calls `fn` once after `ms` (0 or less: as soon as possible, never synchronously). */
  after(ms: number, fn: () => void): Timer;
  /** Resolves after `ms`; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, options?: Partial<Abortable>): Promise<void>;
}

/** A bare timer over 2^31-1 ms fires at once, so longer waits are cut into pieces of one day. */
const LONGEST_TIMER_MS = 24 * 60 * 60 * 1000;

/** The machine's clock. */
export class SystemClock implements Clock {
  now(): Instant {
    return { wall: Date.now(), mono: performance.now() };
  }

  after(ms: number, fn: () => void): Timer {
    const due = performance.now() + ms;
    let handle: NodeJS.Timeout;
    const arm = (): void => {
      // Rounded up: libuv counts whole milliseconds, and a caller that finds itself early would have to wait again.
      const left = Math.ceil(due - performance.now());
      handle = setTimeout(fire, Math.min(LONGEST_TIMER_MS, Math.max(0, left)));
    };
    const fire = (): void => {
      if (performance.now() < due) arm();
      else fn();
    };
    arm();
    return { cancel: () => clearTimeout(handle) };
  }

  sleep(ms: number, options: Partial<Abortable> = {}): Promise<void> {
    return sleepOn(this, ms, options);
  }
}

/** Time that stands still until a test moves it. */
export class FakeClock implements Clock {
  private current: Instant;
  private sequence = 0;
  private readonly pending = new Map<number, { due: number; fn: () => void }>();

  constructor(start: Instant = { wall: Date.UTC(2026, 0, 1), mono: 0 }) {
    this.current = start;
  }

  now(): Instant {
    return this.current;
  }

  after(ms: number, fn: () => void): Timer {
    const id = ++this.sequence;
    this.pending.set(id, { due: this.current.mono + Math.max(0, ms), fn });
    return { cancel: () => void this.pending.delete(id) };
  }

  sleep(ms: number, options: Partial<Abortable> = {}): Promise<void> {
    return sleepOn(this, ms, options);
  }

  /** The number of pending timers, for tests that wait until something sleeps. */
  get waiting(): number {
    return this.pending.size;
  }

  /** Milliseconds until the next timer, or undefined when none waits. */
  get nextIn(): number | undefined {
    let next: number | undefined;
    for (const { due } of this.pending.values()) if (next === undefined || due < next) next = due;
    return next === undefined ? undefined : next - this.current.mono;
  }

  /** Moves both times on, firing timers in order of their due time and letting promises settle after each. */
  async advance(ms: number): Promise<void> {
    const end = this.current.mono + ms;
    await settle();
    for (;;) {
      let first: [number, { due: number; fn: () => void }] | undefined;
      for (const entry of this.pending) {
        if (entry[1].due <= end && (first === undefined || entry[1].due < first[1].due)) first = entry;
      }
      if (first === undefined) break;
      this.pending.delete(first[0]);
      this.moveTo(first[1].due);
      first[1].fn();
      await settle();
    }
    this.moveTo(end);
    await settle();
  }

  /** Moves only the wall clock, as an administrator or NTP does. */
  setWall(wall: number): void {
    this.current = { wall, mono: this.current.mono };
  }

  private moveTo(mono: number): void {
    this.current = { wall: this.current.wall + (mono - this.current.mono), mono };
  }
}

/** Lets everything that is ready to run, run: promises and already due I/O callbacks, several rounds of them. */
async function settle(): Promise<void> {
  for (let round = 0; round < 8; round++) await new Promise((resolve) => setImmediate(resolve));
}

function sleepOn(clock: Clock, ms: number, { signal }: Partial<Abortable>): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    const timer = clock.after(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
