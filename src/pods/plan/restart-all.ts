import type { ObservedContainer } from "../../model/observed.ts";
import { act, type PlanContext, type PlanPart, waitFor } from "./context.ts";
import { crashWait } from "./crash-backoff.ts";
import { RESTART_ALL } from "./pod-plan.ts";
import { crashLoop } from "./start.ts";

/**
 * Stops and removes all containers at once (their logs stay and hold the restart count), the triggers last: if the
 * agent dies in between, the next one finds the reason again. A row of such restarts backs off.
 */
export function planRestartAll(context: PlanContext, triggers: readonly ObservedContainer[]): PlanPart {
  const { pod, observed, memory, now } = context;
  const ended = Math.max(...triggers.map(({ finishedAt }) => finishedAt));
  const crash = memory.crashes.get(RESTART_ALL);
  const afterMs = crashWait(crash, ended, now.wall);
  if (crash !== undefined && afterMs > 0) {
    return waitFor(...triggers.map(({ name }) => crashLoop(pod, name, { crash, afterMs })));
  }
  const names = new Set([...pod.spec.containers, ...(pod.spec.initContainers ?? [])].map(({ name }) => name));
  const others = observed.containers.filter((one) => names.has(one.name) && !triggers.includes(one));
  const kills = others
    .filter(({ state }) => state !== "exited")
    .map((container) => {
      const why = `Stopping container ${container.name}, all containers will be restarted`;
      return { do: "killContainer", container, why, graceSeconds: 0 } as const;
    });
  const removals = [...others, ...triggers].map(
    (container) => ({ do: "removeContainer", container, keepLogs: true }) as const,
  );
  return act({ do: "restartAll", triggers }, ...kills, ...removals);
}
