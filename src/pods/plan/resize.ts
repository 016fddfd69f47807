import { changedOf, changedResources, needsRestart, POD_LEVEL } from "../admission/allocation.ts";
import { act, inOrder, NOTHING, type PlanContext, type PlanPart, type RunningContainer, waitFor } from "./context.ts";
import { type PodAction, resizeHold } from "./pod-plan.ts";
import { planStart } from "./start.ts";

/** Changes a running container's limits in place, or by a restart where its resize policy asks for that. */
export function planResize(context: PlanContext, { container, running, kind }: RunningContainer): PlanPart {
  const { facts, pod } = context;
  // A resize of the whole pod that failed is not begun again, with its containers, before its time.
  const podLevel = holdOf(context, POD_LEVEL) === undefined ? facts.actualPod : undefined;
  const changed = changedOf(container, { own: facts.actualOf?.(running), pod: podLevel }, pod);
  if (changed.length === 0 && facts.isUncertain?.(running.id) !== true) return NOTHING;
  if (needsRestart(container, changed)) {
    const why = `Container ${container.name} resize requires restart`;
    const kill = act({ do: "killContainer", container: running, why, replace: true });
    return inOrder(kill, planStart(context, container, kind));
  }
  const hold = holdOf(context, container.name);
  if (hold !== undefined) return waitFor({ container: container.name, ...hold });
  return act({ do: "resizeContainer", running, spec: container });
}

/** Once all containers have their part, the limits of the whole pod are changed. */
export function planPodResize(context: PlanContext, before: readonly PodAction[]): PlanPart {
  const { facts, pod, observed } = context;
  const { actualPod } = facts;
  const isUncertain = facts.isUncertain?.(POD_LEVEL) === true;
  const isChanged = isUncertain || (actualPod && changedResources(actualPod, pod.spec.resources).length > 0) === true;
  const hold = holdOf(context, POD_LEVEL);
  if (hold !== undefined) return isChanged ? waitFor({ container: POD_LEVEL, ...hold }) : NOTHING;
  const sandbox = observed.sandboxes[0];
  const isResized = isChanged || before.some((action) => action.do === "resizeContainer");
  return sandbox !== undefined && isResized ? act({ do: "resizePod", sandboxId: sandbox.id }) : NOTHING;
}

/** Why and how long a resize that failed is not tried again. */
function holdOf(
  { memory, now }: PlanContext,
  name: string,
): { afterMs: number; reason: string; message: string } | undefined {
  const hold = memory.holds.get(resizeHold(name));
  if (hold === undefined || hold.untilMono <= now.mono) return undefined;
  return { afterMs: hold.untilMono - now.mono, reason: hold.reason, message: hold.message };
}
