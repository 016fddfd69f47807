import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import { watchOpened } from "./file-opened.ts";
import { HostError } from "./host-error.ts";
import type { Host } from "./port.ts";

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
  let isLogged = false;
  for (;;) {
    try {
      const lock = await deps.take(path);
      if (onContention !== undefined) await deps.onOpened(path, onContention, { signal });
      return () => lock.release();
    } catch (error) {
      if (!(error instanceof HostError) || error.code !== "Locked") throw error;
      if (!isLogged) deps.log.info("Waiting for the lock file", { path, holder: error.message });
      isLogged = true;
    }
    await deps.clock.sleep(RETRY_MS, { signal });
  }
}

/**
 * Takes the lock of `--lock-file` and returns its release. With `exitOnLockContention` the agent stops once another
 * one opens the file; its pods go on.
 */
export function holdSharedLock(
  { clock, log, host }: { readonly clock: Clock; readonly log: Logger; readonly host: Pick<Host, "lock"> },
  { lockFile: path, exitOnLockContention }: { readonly lockFile: string; readonly exitOnLockContention: boolean },
  scope: Abortable & { abort(): void },
): Promise<() => void> {
  const onContention = (): void => {
    log.info("Lock file was opened by another process, stopping the agent", { path });
    scope.abort();
  };
  return takeSharedLock(
    { clock, log, take: (file) => host.lock(file), onOpened: watchOpened },
    { path, ...(exitOnLockContention ? { onContention } : {}) },
    scope,
  );
}
