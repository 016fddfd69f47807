import { messageOf } from "../../lib/errors.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";

/** The runtime never gets less, as in Kubernetes: whoever handles its signal quickly still ends by itself. */
const LEAST_GRACE_SECONDS = 2;

/** Stops one container. An interrupt leaves it to be stopped again, with another grace. */
export async function killContainer(
  deps: ExecuteDeps,
  run: PodRun,
  kill: { container: ObservedContainer; why: string; graceSeconds: number },
): Promise<void> {
  const { container } = kill;
  const step = run.journal.begin("kill", { container: container.name, detail: kill.why });
  run.journal.event("Normal", "Killing", { message: kill.why, container: container.name });
  try {
    const grace = Math.max(LEAST_GRACE_SECONDS, Math.ceil(kill.graceSeconds));
    await deps.runtime.stopContainer(container.id, grace, { signal: run.interrupt });
    step.done();
  } catch (error) {
    if (run.interrupt.aborted) step.abort();
    else step.fail(error);
    throw error;
  }
}

/** Stops all that runs, in parallel, then every sandbox. Safe to repeat. */
export async function stopPod(
  deps: ExecuteDeps,
  run: PodRun,
  stop: { observed: ObservedPod; graceSeconds: number; why?: string },
): Promise<void> {
  const alive = stop.observed.containers.filter(
    (container) => container.state === "running" || container.state === "unknown" || container.state === "created",
  );
  const kills = alive.map((container) => {
    const why = stop.why ?? `Stopping container ${container.name}`;
    return killContainer(deps, run, { container, why, graceSeconds: stop.graceSeconds });
  });
  const failures = (await Promise.allSettled(kills)).filter((result) => result.status === "rejected");
  run.interrupt.throwIfAborted();
  if (failures.length > 0) throw new Error(failures.map((failure) => messageOf(failure.reason)).join("; "));
  await Promise.all(stop.observed.sandboxes.map(({ id }) => deps.runtime.stopSandbox(id, { signal: run.interrupt })));
}
