import type { Container } from "../../model/generated/types.ts";
import type { ObservedContainer } from "../../model/observed.ts";
import { isSidecar } from "../../model/pod-facts.ts";
import { act, inOrder, NOTHING, newestOf, type PlanContext, type PlanPart } from "./context.ts";
import { planResize } from "./resize.ts";
import { mayRestart } from "./restart-rules.ts";
import { planRunning } from "./running.ts";
import { planStart } from "./start.ts";

/** Whether the regular containers may start: yes, not yet, or never because an init container failed for good. */
export type InitVerdict = "done" | "wait" | "failed";

/** The part of a plan that concerns init containers. */
export interface InitPlan extends PlanPart {
  readonly verdict: InitVerdict;
}

/** The message of the event Killing for an init container in unknown state, as in Kubernetes. */
const UNKNOWN_STATE = 'Init container is in "unknown" state, try killing it before restart';

/**
 * The last init container that has a status decides how far the pod is; sidecars before it are kept running. Once a
 * regular container exists only the sidecars matter. Starts come out in ascending order.
 */
export function planInit(context: PlanContext): InitPlan {
  const init = context.pod.spec.initContainers ?? [];
  const first = init[0];
  if (first === undefined) return { ...NOTHING, verdict: "done" };
  let verdict: InitVerdict | undefined = hasBegun(context) ? "done" : undefined;
  const parts: PlanPart[] = [];
  for (const [i, container] of [...init.entries()].reverse()) {
    const newest = newestOf(context.observed, container.name);
    const isKept = isSidecar(container) && (newest !== undefined || verdict !== undefined);
    const kept = isKept ? keepSidecar(context, container, newest) : NOTHING;
    const after: InitPlan | undefined =
      newest === undefined || verdict !== undefined ? undefined : afterContainer(context, i, newest);
    verdict ??= after?.verdict;
    parts.unshift(inOrder(kept, after ?? NOTHING));
  }
  if (verdict !== undefined) return { ...inOrder(...parts), verdict };
  return { ...inOrder(...parts, planStart(context, first, "init")), verdict: "wait" };
}

/** True once a regular container was created: the init containers are then done. */
function hasBegun({ pod, observed }: PlanContext): boolean {
  return pod.spec.containers.some(({ name }) => {
    const state = newestOf(observed, name)?.state;
    return state === "created" || state === "running";
  });
}

/** What follows from the state of the newest init container. */
function afterContainer(context: PlanContext, i: number, newest: ObservedContainer): InitPlan {
  const container = context.pod.spec.initContainers?.[i];
  if (container === undefined) return { ...NOTHING, verdict: "wait" };
  return isSidecar(container)
    ? afterSidecar(context, { container, i, newest })
    : afterInit(context, { container, i, newest });
}

interface Newest {
  readonly container: Container;
  readonly i: number;
  readonly newest: ObservedContainer;
}

/** An init container that runs to completion: the next one follows its success, a failure is tried again. */
function afterInit(context: PlanContext, { container, i, newest }: Newest): InitPlan {
  if (newest.state === "running") {
    return { ...planResize(context, { container, running: newest, kind: "init" }), verdict: "wait" };
  }
  const hasSucceeded = newest.state === "exited" && newest.exitCode === 0 && newest.reason !== "OOMKilled";
  if (hasSucceeded) return startNext(context, i);
  const ended = { exitCode: newest.exitCode || 1 };
  if (newest.state !== "created" && !mayRestart(context.pod, ended, container)) {
    return { ...NOTHING, verdict: "failed" };
  }
  return { ...inOrder(killUnknown(newest), planStart(context, container, "init")), verdict: "wait" };
}

/** A sidecar that has started lets the next init container begin; until then everything waits. */
function afterSidecar(context: PlanContext, { container, i, newest }: Newest): InitPlan {
  if (newest.state !== "running") return { ...NOTHING, verdict: "wait" };
  const results = context.probes.get(container.name);
  const isStarted =
    container.startupProbe === undefined || (results?.containerId === newest.id && results.started === true);
  return isStarted ? startNext(context, i) : { ...NOTHING, verdict: "wait" };
}

function startNext(context: PlanContext, i: number): InitPlan {
  const following = context.pod.spec.initContainers?.[i + 1];
  if (following === undefined) return { ...NOTHING, verdict: "done" };
  return { ...planStart(context, following, "init"), verdict: "wait" };
}

/** Starts a sidecar that does not run, and replaces one that changed or whose probe failed. */
function keepSidecar(context: PlanContext, container: Container, newest: ObservedContainer | undefined): PlanPart {
  if (newest?.state === "running") return planRunning(context, { container, running: newest, kind: "init" });
  return inOrder(killUnknown(newest), planStart(context, container, "init"));
}

function killUnknown(newest: ObservedContainer | undefined): PlanPart {
  if (newest?.state !== "unknown") return NOTHING;
  return act({ do: "killContainer", container: newest, why: UNKNOWN_STATE });
}
