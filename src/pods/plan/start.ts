import { containerHash } from "../../model/container-hash.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { type ContainerKind, describePod } from "../../model/pod-facts.ts";
import { act, newestOf, type PlanContext, type PlanPart, waitFor } from "./context.ts";
import { type CrashState, crashOf, crashWait } from "./crash-backoff.ts";
import type { ContainerStart, ContainerWait } from "./pod-plan.ts";

/** Starts a container, or waits for the end of its back-off: of a failed start, or of a crash. */
export function planStart(context: PlanContext, container: Container, kind: ContainerKind): PlanPart {
  const { memory, observed, now, pod } = context;
  const hash = containerHash(container);
  const hold = memory.holds.get(container.name);
  if (hold !== undefined && hold.hash === hash && hold.untilMono > now.mono) {
    const { reason, message, untilMono } = hold;
    return waitFor({ container: container.name, afterMs: untilMono - now.mono, reason, message });
  }
  const newest = newestOf(observed, container.name);
  if (newest?.state === "exited" && newest.hash === hash) {
    const crash = crashOf(memory.crashes, container);
    const afterMs = crashWait(crash, newest.finishedAt, now.wall);
    if (crash !== undefined && afterMs > 0) return waitFor(crashLoop(pod, container.name, { crash, afterMs }));
  }
  return act({ do: "startContainer", start: describeStart(container, kind, newest) });
}

/** The wait of a container in crash back-off, with the message of Kubernetes. */
export function crashLoop(pod: Pod, name: string, wait: { crash: CrashState; afterMs: number }): ContainerWait {
  const { crash, afterMs } = wait;
  const message = `back-off ${goSeconds(crash.delayMs)} restarting failed container=${name} pod=${describePod(pod)}`;
  return { container: name, afterMs, reason: "CrashLoopBackOff", message };
}

function describeStart(container: Container, kind: ContainerKind, newest?: ObservedContainer): ContainerStart {
  const start = { name: container.name, kind };
  if (newest === undefined) return { ...start, attempt: undefined };
  if (newest.state === "created") return { ...start, attempt: newest.attempt, replaces: newest.id };
  const previousEnd = newest.state === "exited" ? { previousEnd: newest.finishedAt } : {};
  return { ...start, attempt: newest.attempt + 1, ...previousEnd };
}

/** Whole seconds the way Go prints a duration: `10s`, `1m20s`, `5m0s`. */
function goSeconds(ms: number): string {
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`;
}
