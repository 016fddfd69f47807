import { AbortScope } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import type { KillOrder } from "../plan/termination.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";
import { killContainers } from "./kill.ts";

/** After its grace period a server has this long to come back, in milliseconds, as it has for an unmount in Kubernetes. */
const PATIENCE_MS = 60_000;
/** A runtime that gives up this long after the grace period, in milliseconds, has waited for the end of a SIGKILL. */
const KILLED_MS = 10_000;

/**
 * Kills the containers of a pod that terminates, also those whose processes hang in the kernel because the server of a
 * volume is gone: those do not even end by SIGKILL.
 */
export async function killHungContainers(deps: ExecuteDeps, run: PodRun, order: KillOrder): Promise<void> {
  const scope = new AbortScope([run.interrupt]);
  const began = deps.clock.now().mono;
  const graceMs = longestGrace(order) * 1000;
  const watching = releaseVolumes(deps, run, { afterMs: graceMs + PATIENCE_MS, signal: scope.signal });
  watching.catch(() => undefined);
  try {
    await killContainers(deps, run, order);
  } catch (error) {
    const isHung = deps.clock.now().mono - began >= graceMs + KILLED_MS;
    if (isHung && !run.interrupt.aborted) await release(deps, run, scope.signal);
    throw error;
  } finally {
    scope.abort();
    scope.dispose();
  }
}

/** Never ends by itself: rejects on abort. */
async function releaseVolumes(
  deps: ExecuteDeps,
  run: PodRun,
  { afterMs, signal }: { afterMs: number; signal: AbortSignal },
): Promise<never> {
  await deps.clock.sleep(afterMs, { signal });
  for (;;) {
    await release(deps, run, signal);
    await deps.clock.sleep(PATIENCE_MS, { signal });
  }
}

async function release(deps: ExecuteDeps, run: PodRun, signal: AbortSignal): Promise<void> {
  const { uid } = podIdentity(run.pod);
  try {
    await deps.volumes.release(uid, { signal });
  } catch (error) {
    if (signal.aborted) return;
    deps.log.warn("Failed to release volumes of containers that hang", { podUID: uid, error: messageOf(error) });
  }
}

function longestGrace({ stages, beside }: KillOrder): number {
  return Math.max(0, ...[...stages.flat(), ...beside].map(({ graceSeconds }) => graceSeconds));
}
