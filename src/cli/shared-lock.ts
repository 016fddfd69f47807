import { HostError } from "../adapters/host/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";

const RETRY_MS = 500;

export interface SharedLockDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Makes the folder if need be, and takes the lock or throws `Locked`. */
  take(path: string): Promise<{ release(): void }>;
  /** Calls back once somebody opens the file, or takes it away. */
  onOpened(path: string, fn: () => void, options: Abortable): Promise<void>;
}

/**
 * `--lock-file`: whoever has it may be the agent of this machine. Waits for it as long as it takes. With
 * `exitOnContention` the agent ends when the next one opens the file, so that a new agent can take over from an old one.
 */
export async function takeSharedLock(
  deps: SharedLockDeps,
  { path, onContention }: { path: string; onContention?: () => void },
  { signal }: Abortable,
): Promise<() => void> {
  let isTold = false;
  for (;;) {
    try {
      const lock = await deps.take(path);
      if (onContention !== undefined) await deps.onOpened(path, onContention, { signal });
      return () => lock.release();
    } catch (error) {
      if (!(error instanceof HostError) || error.code !== "Locked") throw error;
      if (!isTold) deps.log.info("waiting for the lock file", { path, holder: error.message });
      isTold = true;
    }
    await deps.clock.sleep(RETRY_MS, { signal });
  }
}
