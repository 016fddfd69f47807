import type { Abortable } from "./abort.ts";
import type { Clock } from "./clock.ts";

export interface SweepOptions extends Abortable {
  readonly clock: Clock;
  /** How many are worked on at once. */
  readonly limit: number;
  /** After this time, in milliseconds, one that is not done gives its place to the next and goes on. */
  readonly patienceMs: number;
}

/**
 * Does `work` for each item, a bounded number at once and in order, so that thousands of them do not keep other work of
 * the agent waiting, and a few that hang do not keep the rest. Resolves to all results; rejects with the first failure, or
 * on abort, and begins no further ones then.
 */
export async function sweep<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  { clock, limit, patienceMs, signal }: SweepOptions,
): Promise<readonly R[]> {
  const results: Promise<R>[] = [];
  const left = items.entries();
  let hasFailed = false;
  const lane = async (): Promise<void> => {
    for (const [at, item] of left) {
      if (hasFailed) return;
      signal.throwIfAborted();
      const result = work(item);
      results[at] = result;
      result.catch(() => {
        hasFailed = true;
      });
      await settled(result, patienceMs, clock);
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, lane));
  return Promise.all(results);
}

/** Resolves when the work is done or the time is over; rejects if the work fails before that. */
function settled(work: Promise<unknown>, ms: number, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, resolve);
    work.finally(() => timer.cancel()).then(() => resolve(), reject);
  });
}
