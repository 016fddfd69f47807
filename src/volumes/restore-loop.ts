import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { type Loop, untilAborted } from "../lib/loop.ts";

/** After a failed restore the next one comes after this time, in milliseconds. */
const RETRY_MS = 1000;

export interface RestoreLoopDeps {
  readonly clock: Clock;
  restore(signal: AbortSignal): Promise<void>;
  /** Called when a restore failed, unless it did so for the same reason as the one before. */
  failed(error: string): void;
}

/** Restores at the start, again each second until it succeeds. */
export function restoreLoop(name: string, { clock, restore, failed }: RestoreLoopDeps): Loop {
  const run = async (signal: AbortSignal): Promise<void> => {
    let lastError = "";
    while (!signal.aborted) {
      try {
        await restore(signal);
        return await untilAborted(signal);
      } catch (error) {
        const message = messageOf(error);
        if (message !== lastError) failed(message);
        lastError = message;
        await clock.sleep(RETRY_MS, { signal }).catch(() => undefined);
      }
    }
  };
  return { name, run };
}
