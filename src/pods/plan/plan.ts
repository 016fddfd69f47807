import type { Instant } from "../../lib/clock.ts";
import type { Pod } from "../../model/generated/types.ts";
import { inOrder, type PlanContext, type PlanPart, planContext } from "./context.ts";
import { planInit } from "./init.ts";
import type { PlanFacts, PodAction, PodPlan } from "./pod-plan.ts";
import { DEFAULT_DEAD_LIMITS, prunePod } from "./prune.ts";
import { planEphemeral, planRegular } from "./regular.ts";
import { planPodResize } from "./resize.ts";
import { planRestartAll } from "./restart-all.ts";
import { restartTriggers } from "./restart-rules.ts";
import { planNewSandbox, sandboxProblem } from "./sandbox.ts";

/** Plans the next sync of a pod that should run; `planTermination` is for one that should not. Pure. */
export function planPod(pod: Pod, facts: PlanFacts, now: Instant): PodPlan {
  if (facts.refusal !== undefined) return { kind: "converge", actions: [], waits: [] };
  const context = planContext(pod, facts, now);
  const misplaced = facts.isMisplaced === true ? "its containers are not in the pod's cgroup" : undefined;
  const problem = sandboxProblem(pod, context.observed) ?? misplaced;
  if (problem === undefined) return planInSandbox(context);
  const plan = planNewSandbox(context, problem);
  return "finish" in plan ? { kind: "finish", why: plan.finish } : converge(context, plan);
}

function planInSandbox(context: PlanContext): PodPlan {
  const triggers = restartTriggers(context.pod, context.observed);
  // What is left of earlier instances is removed with the rest.
  if (triggers.length > 0) return { kind: "converge", ...planRestartAll(context, triggers) };
  const ephemeral = planEphemeral(context);
  const init = planInit(context);
  if (init.verdict === "failed") return { kind: "finish", why: "an init container failed and must not run again" };
  if (init.verdict === "wait") return converge(context, inOrder(ephemeral, init));
  const regular = planRegular(context);
  if (!regular.alive) return { kind: "finish", why: "every container has terminated" };
  const all = inOrder(ephemeral, init, regular);
  return converge(context, inOrder(all, planPodResize(context, all.actions)));
}

/** The plan, and after it the removal of what is left of earlier instances. */
function converge({ observed, facts, now }: PlanContext, { actions, waits }: PlanPart): PodPlan {
  const { containers, sandboxIds, afterMs } = prunePod(observed, facts.dead ?? DEFAULT_DEAD_LIMITS, now);
  const removals: PodAction[] = [
    ...containers.map((container): PodAction => ({ do: "removeContainer", container })),
    ...sandboxIds.map((sandboxId): PodAction => ({ do: "removeSandbox", sandboxId })),
  ];
  const pruneAfterMs = afterMs === undefined ? {} : { pruneAfterMs: afterMs };
  return { kind: "converge", actions: [...actions, ...removals], waits, ...pruneAfterMs };
}
