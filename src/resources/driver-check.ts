import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { type Loop, untilAborted } from "../lib/loop.ts";
import type { CgroupDriver } from "./cgroup-names.ts";

export interface DriverCheckDeps {
  readonly clock: Clock;
  /** Returns undefined if the runtime does not tell its driver: then the configuration counts. */
  readonly runtime: { cgroupDriver(options: Abortable): Promise<CgroupDriver | undefined> };
}

/** Until the runtime answers it is asked this often, in milliseconds, as in Kubernetes. */
const RETRY_MS = 2000;

/**
 * Ends the agent if the runtime uses another cgroup driver than the agent assumed while it did not answer yet, such as
 * after a boot that starts both: no pod could start. The next start asks again.
 */
export function checkDriver({ clock, runtime }: DriverCheckDeps, assumed: CgroupDriver): Loop {
  const ask = async (signal: AbortSignal): Promise<CgroupDriver | undefined> => {
    for (;;) {
      try {
        return await runtime.cgroupDriver({ signal });
      } catch {
        signal.throwIfAborted();
        await clock.sleep(RETRY_MS, { signal });
      }
    }
  };
  const run = async (signal: AbortSignal): Promise<void> => {
    const driver = await ask(signal);
    if (driver !== undefined && driver !== assumed)
      throw new Error(`the runtime uses cgroup driver ${driver}, and the agent assumed ${assumed} before it answered`);
    await untilAborted(signal);
  };
  return { name: "cgroup driver", run };
}
