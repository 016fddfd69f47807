import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { HostError } from "./host-error.ts";
import type { Host } from "./port.ts";

/** Milliseconds that an agent may take to stop. */
const STOP_MS = 15_000;
const CHECK_MS = 50;

export interface StopAgentDeps {
  readonly host: Pick<Host, "lockHolder" | "signalProcess">;
  readonly clock: Clock;
  progress(text: string): void;
}

/** Stops the agent that holds a lock, if there is one, and waits for its end. Rejects with `Timeout`. */
export async function stopAgent(
  { host, clock, progress }: StopAgentDeps,
  lock: string,
  { signal }: Abortable,
): Promise<void> {
  const holder = await host.lockHolder(lock);
  if (holder === undefined) return;
  progress(`stopping the agent (pid ${holder.pid})`);
  const deadline = clock.now().mono + STOP_MS;
  host.signalProcess(holder, "SIGTERM");
  while ((await host.lockHolder(lock))?.pid === holder.pid) {
    if (clock.now().mono > deadline) {
      throw new HostError("Timeout", `stop agent (pid ${holder.pid}): it did not end within ${STOP_MS / 1000} s`);
    }
    await clock.sleep(CHECK_MS, { signal });
  }
}
