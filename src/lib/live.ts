import type { Abortable } from "./abort.ts";
import type { Clock } from "./clock.ts";
import { Listeners } from "./listeners.ts";

/** A setting that may change while the agent runs: read `current` at each use, never copy it. */
export interface Live<T> {
  readonly current: T;
  /** Calls `fn` after each change until the signal aborts. */
  onChange(fn: (value: T) => void, options: Abortable): void;
}

/** The writable end of a `Live`; only its owner holds it. */
export class LiveValue<T> implements Live<T> {
  private value: T;
  private readonly listeners = new Listeners<T>();

  constructor(initial: T) {
    this.value = initial;
  }

  get current(): T {
    return this.value;
  }

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    this.listeners.call(value);
  }

  onChange(fn: (value: T) => void, options: Abortable): void {
    // A listener may set again: that inner round has then reported the newest value.
    const report = (value: T): void => {
      if (Object.is(this.value, value)) fn(value);
    };
    this.listeners.add(report, options);
  }
}

/** A `Live` that never changes, for tests and for values fixed at start. */
export function fixed<T>(value: T): Live<T> {
  return { current: value, onChange: () => undefined };
}

/** A view of one part of a live value; listeners are called only on changes of that part. */
export function select<T, U>(source: Live<T>, pick: (value: T) => U): Live<U> {
  return {
    get current() {
      return pick(source.current);
    },
    onChange(fn, options) {
      let last = pick(source.current);
      source.onChange((value) => {
        const next = pick(value);
        if (Object.is(next, last)) return;
        last = next;
        fn(next);
      }, options);
    },
  };
}

/** As `select` for a pure function that costs something: called once for each value of the source, not at each read. */
export function derive<T, U>(source: Live<T>, pick: (value: T) => U): Live<U> {
  let last: { readonly from: T; readonly value: U } | undefined;
  return select(source, (from) => {
    if (last === undefined || !Object.is(last.from, from)) last = { from, value: pick(from) };
    return last.value;
  });
}

/** Sleeps for the duration in the live value, counted from now; a change takes effect at once. Rejects on abort. */
export async function sleepLive(clock: Clock, ms: Live<number>, { signal }: Abortable): Promise<void> {
  signal.throwIfAborted();
  const began = clock.now().mono;
  const listening = new AbortController();
  try {
    await new Promise<void>((resolve, reject) => {
      let timer = clock.after(ms.current, resolve);
      const options = { signal: listening.signal };
      ms.onChange((next) => {
        timer.cancel();
        timer = clock.after(began + next - clock.now().mono, resolve);
      }, options);
      const onAbort = (): void => {
        timer.cancel();
        reject(signal.reason as Error);
      };
      signal.addEventListener("abort", onAbort, { ...options, once: true });
    });
  } finally {
    listening.abort();
  }
}
