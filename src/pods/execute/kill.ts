import { AbortScope } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import type { KillOrder } from "../plan/termination.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";
import { preStop } from "./pre-stop.ts";

/** The shortest grace period in seconds that the runtime gets, as in Kubernetes: it avoids needless SIGKILLs. */
const MIN_GRACE_SECONDS = 2;

/** What a kill needs to know of a container. */
export type KillTarget = Pick<ObservedContainer, "id" | "name" | "state" | "annotations">;

/** Kills one container: preStop hook, SIGTERM, SIGKILL. If interrupted it may be killed again, with a shorter grace period. */
export async function killContainer(
  deps: ExecuteDeps,
  run: PodRun,
  kill: { container: KillTarget; why: string; graceSeconds: number; after?: Promise<unknown> },
): Promise<void> {
  const { container } = kill;
  const step = run.journal.begin("kill", { container: container.name, detail: kill.why });
  run.journal.event("Normal", "Killing", { message: kill.why, container: container.name });
  try {
    let left = kill.graceSeconds - (await preStop(deps, run, kill));
    if (kill.after !== undefined) left -= await waitFor(deps, run, { others: kill.after, seconds: left });
    const grace = Math.max(MIN_GRACE_SECONDS, Math.ceil(left));
    await deps.runtime.stopContainer(container.id, grace, { signal: run.interrupt });
    step.done();
  } catch (error) {
    if (run.interrupt.aborted) step.abort();
    else step.fail(error);
    throw error;
  } finally {
    // A kill that is begun again with a shorter grace period waits for the same hook.
    if (!run.interrupt.aborted) run.preStops.end(container.id);
  }
}

/** Waits for the containers that must stop before this one, at most its grace period; answers the whole seconds it took. */
async function waitFor(
  deps: ExecuteDeps,
  run: PodRun,
  { others, seconds }: { others: Promise<unknown>; seconds: number },
): Promise<number> {
  const began = deps.clock.now().mono;
  const scope = new AbortScope([run.interrupt]);
  const limit = deps.clock.sleep(Math.max(0, seconds) * 1000, scope).catch(() => undefined);
  await Promise.race([others, limit]);
  scope.abort();
  scope.dispose();
  run.interrupt.throwIfAborted();
  return Math.floor((deps.clock.now().mono - began) / 1000);
}

/**
 * Kills containers stage by stage. Safe to repeat. All preStop hooks begin at once; the signals of a stage come after
 * the stages before it have terminated, or at the end of the grace period.
 */
export async function killContainers(deps: ExecuteDeps, run: PodRun, { stages, beside }: KillOrder): Promise<void> {
  const others = beside.map(({ container, graceSeconds }) =>
    container.state === "running"
      ? killContainer(deps, run, { container, why: whyStopped(container), graceSeconds })
      : stopIdle(deps, run, { container, graceSeconds }),
  );
  const kills: Promise<void>[] = [];
  for (const stage of stages) {
    // Whatever came of the stages before: their containers are gone, or their grace period is over.
    const after = kills.length === 0 ? {} : { after: Promise.allSettled([...kills]) };
    for (const { container, graceSeconds } of stage) {
      kills.push(killContainer(deps, run, { container, why: whyStopped(container), graceSeconds, ...after }));
    }
  }
  const results = await Promise.allSettled([...kills, ...others]);
  const failures = results.filter((result) => result.status === "rejected");
  run.interrupt.throwIfAborted();
  if (failures.length > 0) throw new Error(failures.map((failure) => messageOf(failure.reason)).join("; "));
}

function whyStopped({ name }: KillTarget): string {
  return `Stopping container ${name}`;
}

/** Stops a container that is not known to run. A failure does not count: its sandbox is stopped next. */
async function stopIdle(
  deps: ExecuteDeps,
  run: PodRun,
  { container, graceSeconds }: { container: KillTarget; graceSeconds: number },
): Promise<void> {
  const { id, name, state } = container;
  try {
    await deps.runtime.stopContainer(id, Math.max(MIN_GRACE_SECONDS, graceSeconds), { signal: run.interrupt });
  } catch (error) {
    if (run.interrupt.aborted) throw error;
    const { uid } = podIdentity(run.pod);
    deps.log.warn("Failed to stop container that does not run", {
      podUID: uid,
      container: name,
      containerID: id,
      state,
      error: messageOf(error),
    });
  }
}

/** Stops sandboxes, and with them their network. Safe to repeat. */
export async function stopSandboxes(deps: ExecuteDeps, run: PodRun, sandboxIds: readonly string[]): Promise<void> {
  await Promise.all(sandboxIds.map((id) => deps.runtime.stopSandbox(id, { signal: run.interrupt })));
}
