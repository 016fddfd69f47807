import type { ContainerStatus, Pod, PodCondition, PodStatus } from "../../model/generated/types.ts";
import { isSidecar } from "../../model/pod-facts.ts";
import { hasRestartAllRule, restartTriggers } from "../plan/restart-rules.ts";
import { time } from "./derive-container.ts";
import { withReadinessGates } from "./readiness-gates.ts";
import type { StatusFacts } from "./status-facts.ts";

/** True for the name of an init container that goes on running. */
export function isSidecarOf(pod: Pod, name: string): boolean {
  const spec = (pod.spec.initContainers ?? []).find((container) => container.name === name);
  return spec !== undefined && isSidecar(spec);
}

/** The containers whose readiness counts: the regular ones and the sidecars. */
export function countedForReady(
  pod: Pod,
  { init, regular }: Pick<ConditionFacts, "init" | "regular">,
): readonly ContainerStatus[] {
  return [...init.filter((status) => isSidecarOf(pod, status.name)), ...regular];
}

/** What the conditions follow from, besides the facts of the status. */
interface ConditionFacts {
  readonly phase: string | undefined;
  readonly init: readonly ContainerStatus[];
  readonly regular: readonly ContainerStatus[];
  readonly sandboxServes: boolean;
}

/** Every condition that the agent owns. Pure. */
export function conditionsOf(facts: StatusFacts, derived: ConditionFacts): PodCondition[] {
  const ready = containersReady({ phase: derived.phase, regular: countedForReady(facts.pod, derived) });
  const made: [string, Judgement][] = [
    ["PodReadyToStartContainers", { holds: derived.sandboxServes && !facts.finished }],
    ["Initialized", initializedCondition(facts, derived)],
    ["Ready", withReadinessGates(ready, facts.pod)],
    ["ContainersReady", ready],
    ["PodScheduled", { holds: true }],
    ...(hasRestartAllRule(facts.pod) ? [restartingCondition(facts)] : []),
    ...disruptionCondition(facts, derived),
    ...resizeConditions(facts),
  ];
  const generation = generationOf(facts).observedGeneration;
  const judged = { ...facts, ...(generation === undefined ? {} : { generation }) };
  return made.map(([type, judgement]) => condition(type, judgement, judged));
}

/** The conditions of a resize, present only while they hold. */
function resizeConditions({ resizePending, resizing, terminating }: StatusFacts): [string, Judgement][] {
  if (terminating) return [];
  const error = resizing?.error;
  const inProgress = { holds: true, ...(error === undefined ? {} : { reason: "Error", message: error }) };
  return [
    ...(resizePending === undefined ? [] : [["PodResizePending", { holds: true, ...resizePending }] as const]),
    ...(resizing === undefined ? [] : [["PodResizeInProgress", inProgress] as const]),
  ].map(([type, judgement]) => [type, judgement]);
}

function disruptionCondition({ failure }: StatusFacts, { phase }: ConditionFacts): [string, Judgement][] {
  if (failure?.disruption === undefined || (phase !== "Failed" && phase !== "Succeeded")) return [];
  return [["DisruptionTarget", { holds: true, reason: "TerminationByKubelet", message: failure.disruption }]];
}

/** AllContainersRestarting, only for pods whose restart rules may ask for it. */
function restartingCondition(facts: StatusFacts): [string, Judgement] {
  const isAsked = facts.restartingAll === true || restartTriggers(facts.pod, facts.observed).length > 0;
  const why = { reason: "RestartAllContainersStarted", message: "container exited with restart policy rule" };
  return ["AllContainersRestarting", isAsked && !facts.terminating ? { holds: true, ...why } : { holds: false }];
}

/** The generation that this status is about, never less than before; a static pod has none. */
export function generationOf({ pod, previous }: StatusFacts): Pick<PodStatus, "observedGeneration"> {
  const generation = Math.max(pod.metadata.generation ?? 0, previous?.observedGeneration ?? 0);
  return generation === 0 ? {} : { observedGeneration: generation };
}

/** A condition; its transition time changes only with its status. */
export function condition(
  type: string,
  judgement: Judgement,
  facts: { readonly previous: PodStatus | undefined; readonly now: number; readonly generation?: number },
): PodCondition {
  const status = judgement.holds ? "True" : "False";
  const before = facts.previous?.conditions?.find((known) => known.type === type);
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : time(facts.now);
  return {
    type,
    status,
    lastTransitionTime,
    ...(facts.generation === undefined ? {} : { observedGeneration: facts.generation }),
    ...(judgement.reason === undefined ? {} : { reason: judgement.reason }),
    ...(judgement.message === undefined ? {} : { message: judgement.message }),
  };
}

/** Whether a condition holds, and why not. */
export interface Judgement {
  readonly holds: boolean;
  readonly reason?: string;
  readonly message?: string;
}

function initializedCondition(facts: StatusFacts, { phase, init, regular }: ConditionFacts): Judgement {
  if (phase === "Succeeded") return { holds: true, reason: "PodCompleted" };
  const before = facts.previous?.conditions?.find((condition) => condition.type === "Initialized");
  if (before?.status === "True" || regular.some((status) => status.containerID !== undefined)) return { holds: true };
  const isDone = (status: ContainerStatus): boolean =>
    isSidecarOf(facts.pod, status.name) ? status.started === true : status.ready;
  const incomplete = init.filter((status) => !isDone(status)).map((status) => status.name);
  if (incomplete.length === 0) return { holds: true };
  const message = `containers with incomplete status: [${incomplete.join(" ")}]`;
  return { holds: false, reason: "ContainersNotInitialized", message };
}

/** Ready and ContainersReady of a pod without readiness gates. */
export function containersReady({ phase, regular }: Pick<ConditionFacts, "phase" | "regular">): Judgement {
  if (phase === "Succeeded") return { holds: false, reason: "PodCompleted" };
  if (phase === "Failed") return { holds: false, reason: "PodFailed" };
  const unready = regular.filter((status) => !status.ready).map((status) => status.name);
  if (unready.length === 0) return { holds: true };
  return {
    holds: false,
    reason: "ContainersNotReady",
    message: `containers with unready status: [${unready.join(" ")}]`,
  };
}
