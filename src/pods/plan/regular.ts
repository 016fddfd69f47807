import type { Container } from "../../model/generated/types.ts";
import { act, inOrder, NOTHING, newestOf, type PlanContext, type PlanPart } from "./context.ts";
import { mayRestart } from "./restart-rules.ts";
import { planRunning, type RunningPlan } from "./running.ts";
import { planStart } from "./start.ts";

/** The regular containers; `alive` is false when none of them runs, will run, or waits to be started. */
export function planRegular(context: PlanContext): RunningPlan {
  const plans = context.pod.spec.containers.map((container) => planOne(context, container));
  return { ...inOrder(...plans), alive: plans.some(({ alive }) => alive) };
}

function planOne(context: PlanContext, container: Container): RunningPlan {
  const { pod, observed, memory, facts } = context;
  const newest = newestOf(observed, container.name);
  if (newest?.state === "running") return planRunning(context, { container, running: newest, kind: "regular" });
  const isReplaced = memory.replacing.has(container.name);
  const exit = newest === undefined ? facts.lost?.get(container.name) : newest.state === "exited" ? newest : undefined;
  if (exit !== undefined && !isReplaced && !mayRestart(pod, exit, container)) {
    return { ...NOTHING, alive: false };
  }
  const why = `Container is in "unknown" state, try killing it before restart`;
  const kill = newest?.state === "unknown" ? act({ do: "killContainer", container: newest, why }) : NOTHING;
  return { ...inOrder(kill, planStart(context, container, "regular")), alive: true };
}

/** Ephemeral containers: each is started once, whatever the others do, and never again. */
export function planEphemeral(context: PlanContext): PlanPart {
  const { pod, observed, facts } = context;
  const isNew = ({ name }: Container): boolean =>
    newestOf(observed, name) === undefined && facts.lost?.has(name) !== true;
  const added = (pod.spec.ephemeralContainers ?? []).filter(isNew);
  return inOrder(...added.map((container) => planStart(context, container, "ephemeral")));
}
