import { type Abortable, isAborted } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";

export interface FirstListDeps {
  readonly clock: Clock;
  /** When the runtime was last listed; undefined before the first list. */
  listedAt(): object | undefined;
}

/** How long the first list of the runtime is waited for, and how often it is checked, in milliseconds. */
const LIST_MS = 30_000;
const POLL_MS = 100;

/** Resolves when the runtime was listed once, after half a minute, or when the signal aborts. */
export function untilListed({ listedAt, clock }: FirstListDeps, { signal }: Abortable): Promise<void> {
  return untilTrue(() => listedAt() !== undefined, { clock, ms: LIST_MS }, signal);
}

/** Resolves when the condition holds, when the time is up, or when the signal aborts. */
export async function untilTrue(
  holds: () => boolean,
  { clock, ms }: { readonly clock: Clock; readonly ms: number },
  signal: AbortSignal,
): Promise<void> {
  const until = clock.now().mono + ms;
  try {
    while (!holds() && clock.now().mono < until) await clock.sleep(POLL_MS, { signal });
  } catch (error) {
    if (!isAborted(error, signal)) throw error;
  }
}
