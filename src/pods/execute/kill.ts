import { AbortScope, TimeLimitError } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Container, LifecycleHandler } from "../../model/generated/types.ts";
import { CONTAINER_PORTS_ANNOTATION, PRE_STOP_HANDLER_ANNOTATION } from "../../model/labels.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { allContainers, podIdentity } from "../../model/pod-facts.ts";
import type { KillOrder } from "../plan/termination.ts";
import type { ExecuteDeps, PodRun } from "./context.ts";
import { type HookTarget, runHook } from "./hooks.ts";

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
  // A hook that outlives the grace period goes on beside the signal, as in Kubernetes, and ends with the container.
  const hook = new AbortScope([run.interrupt]);
  try {
    let left = kill.graceSeconds - (await preStop(deps, run, { ...kill, hook }));
    if (kill.after !== undefined) left -= await waitFor(deps, run, { others: kill.after, seconds: left });
    const grace = Math.max(MIN_GRACE_SECONDS, Math.ceil(left));
    await deps.runtime.stopContainer(container.id, grace, { signal: run.interrupt });
    step.done();
  } catch (error) {
    if (run.interrupt.aborted) step.abort();
    else step.fail(error);
    throw error;
  } finally {
    hook.abort();
    hook.dispose();
  }
}

/** Begins the preStop hook once and waits for it at most the grace period; answers how many whole seconds it took. */
async function preStop(
  deps: ExecuteDeps,
  run: PodRun,
  kill: { container: KillTarget; graceSeconds: number; hook: AbortScope },
): Promise<number> {
  const { container, graceSeconds } = kill;
  const spec = allContainers(run.pod).find(({ name }) => name === container.name) ?? recordedSpec(container);
  const handler = spec.lifecycle?.preStop;
  if (handler === undefined || container.state !== "running" || graceSeconds <= 0) return 0;
  if (run.preStopped.has(container.id)) return 0;
  run.preStopped.add(container.id);
  const began = deps.clock.now().mono;
  const step = run.journal.begin("hook", { container: container.name, detail: "preStop" });
  const limit = new AbortScope([run.interrupt]);
  try {
    const target = hookTarget(run, spec, container.id);
    const ms = graceSeconds * 1000;
    const tooLong = deps.clock.sleep(ms, limit).then(() => Promise.reject(new TimeLimitError(ms)));
    await Promise.race([runHook(deps, { handler, target }, kill.hook), tooLong]);
    step.done("preStop");
  } catch (error) {
    if (run.interrupt.aborted) {
      step.abort();
      throw error;
    }
    step.fail(error);
    run.journal.event("Warning", "FailedPreStopHook", { message: "PreStopHook failed", container: container.name });
  } finally {
    limit.abort();
    limit.dispose();
  }
  return Math.floor((deps.clock.now().mono - began) / 1000);
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

/** What a kubelet recorded on the container of an orphaned pod: its preStop hook and the ports that this may name. */
function recordedSpec({ name, annotations }: KillTarget): Container {
  const preStop = parse<LifecycleHandler>(annotations[PRE_STOP_HANDLER_ANNOTATION]);
  const ports = parse<Container["ports"]>(annotations[CONTAINER_PORTS_ANNOTATION]);
  return { name, ...(preStop && { lifecycle: { preStop } }), ...(Array.isArray(ports) && { ports }) };
}

function parse<T>(text: string | undefined): T | undefined {
  if (text === undefined) return undefined;
  try {
    return (JSON.parse(text) as T | null) ?? undefined; // reason: a kubelet wrote it from the spec
  } catch {
    return undefined;
  }
}

/** The target of a container's hook. */
export function hookTarget(run: PodRun, container: Container, containerId: string): HookTarget {
  const { pod, journal } = run;
  const onPlainHttp = (message: string): void =>
    journal.event("Warning", "LifecycleHTTPFallback", { message, container: container.name });
  return { pod, container, containerId, podIp: run.podIp, onPlainHttp };
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
