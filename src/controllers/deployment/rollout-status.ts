import type { Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet } from "../../model/generated/types.ts";
import { conditionOf, withCondition, withoutCondition } from "../conditions.ts";
import { timeOf } from "../time-text.ts";
import { availableOf, maxUnavailable, sizeOf, sum, wantedReplicas } from "./replica-counts.ts";
import type { DeploymentSets } from "./rolling-plan.ts";

const NO_DEADLINE = 2 ** 31 - 1;
const PROGRESSING = "Progressing";
const COMPLETE = "NewReplicaSetAvailable";
const TIMED_OUT = "ProgressDeadlineExceeded";

/** A moment as the API writes it, and in milliseconds. */
export interface Now {
  readonly text: string;
  readonly ms: number;
}

export interface NewCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
}

export function newCondition(condition: NewCondition, { text }: Now): DeploymentCondition {
  return { ...condition, lastUpdateTime: text, lastTransitionTime: text };
}

export function hasDeadline({ spec }: Deployment): boolean {
  return spec.progressDeadlineSeconds !== undefined && spec.progressDeadlineSeconds !== NO_DEADLINE;
}

/** The status by what the sets report, without judging the rollout. Pure. */
export function countedStatus(deployment: Deployment, { newSet, oldSets }: DeploymentSets, now: Now): DeploymentStatus {
  const all = [...oldSets, ...(newSet ? [newSet] : [])];
  const available = sum(all, availableOf);
  const hasMinimum = available >= wantedReplicas(deployment) - maxUnavailable(deployment);
  const { collisionCount, conditions = [] } = deployment.status ?? {};
  const condition = newCondition(
    hasMinimum
      ? {
          type: "Available",
          status: "True",
          reason: "MinimumReplicasAvailable",
          message: "Deployment has minimum availability.",
        }
      : {
          type: "Available",
          status: "False",
          reason: "MinimumReplicasUnavailable",
          message: "Deployment does not have minimum availability.",
        },
    now,
  );
  return {
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: sum(all, ({ status }) => status?.replicas ?? 0),
    updatedReplicas: newSet?.status?.replicas ?? 0,
    readyReplicas: sum(all, ({ status }) => status?.readyReplicas ?? 0),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, sum(all, sizeOf) - available),
    terminatingReplicas: sum(all, ({ status }) => status?.terminatingReplicas ?? 0),
    ...(collisionCount !== undefined && { collisionCount }),
    conditions: withCondition(conditions, condition),
  };
}

/** The status of a rollout: counted, and whether it goes on, is complete, or has stopped for too long. Pure. */
export function rolloutStatus(deployment: Deployment, sets: DeploymentSets, now: Now): DeploymentStatus {
  const status = countedStatus(deployment, sets, now);
  const progressed = withProgress(deployment, { status, newSet: sets.newSet }, now);
  const failure = failureOf(sets);
  const conditions =
    failure === undefined ? withoutCondition(progressed, "ReplicaFailure") : withCondition(progressed, failure);
  return { ...status, conditions };
}

function withProgress(
  deployment: Deployment,
  { status, newSet }: { readonly status: DeploymentStatus; readonly newSet: ReplicaSet | undefined },
  now: Now,
): readonly DeploymentCondition[] {
  const { conditions = [] } = status;
  if (!hasDeadline(deployment)) return withoutCondition(conditions, PROGRESSING);
  const known = conditionOf(deployment.status?.conditions, PROGRESSING);
  const wasComplete = status.replicas === status.updatedReplicas && known?.reason === COMPLETE;
  if (wasComplete) return conditions;
  const subject =
    newSet === undefined
      ? `Deployment ${JSON.stringify(deployment.metadata.name)}`
      : `ReplicaSet ${JSON.stringify(newSet.metadata.name)}`;
  const of = (state: "True" | "False", reason: string, words: string): DeploymentCondition =>
    newCondition({ type: PROGRESSING, status: state, reason, message: `${subject} ${words}` }, now);
  if (isComplete(deployment, status)) {
    return withCondition(conditions, of("True", COMPLETE, "has successfully progressed."));
  }
  if (isProgressing(deployment.status ?? {}, status)) {
    const next = of("True", "ReplicaSetUpdated", "is progressing.");
    const { lastTransitionTime } = known?.status === "True" ? known : next;
    // Each progress counts anew, also for the same reason.
    return [
      ...withoutCondition(conditions, PROGRESSING),
      { ...next, ...(lastTransitionTime && { lastTransitionTime }) },
    ];
  }
  return isTimedOut(deployment, known, now)
    ? withCondition(conditions, of("False", TIMED_OUT, "has timed out progressing."))
    : conditions;
}

/** Whether all wanted pods are of the newest template and available, and no others are left. Pure. */
export function isComplete(deployment: Deployment, status: DeploymentStatus): boolean {
  const wanted = wantedReplicas(deployment);
  const counts = [status.updatedReplicas ?? 0, status.replicas ?? 0, status.availableReplicas ?? 0];
  const isSeen = (status.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 0);
  return counts.every((count) => count === wanted) && isSeen;
}

function isProgressing(old: DeploymentStatus, next: DeploymentStatus): boolean {
  const count = (
    status: DeploymentStatus,
    of: "updatedReplicas" | "readyReplicas" | "availableReplicas" | "replicas",
  ) => status[of] ?? 0;
  const outdated = (status: DeploymentStatus): number => count(status, "replicas") - count(status, "updatedReplicas");
  return (
    count(next, "updatedReplicas") > count(old, "updatedReplicas") ||
    outdated(next) < outdated(old) ||
    count(next, "readyReplicas") > count(old, "readyReplicas") ||
    count(next, "availableReplicas") > count(old, "availableReplicas")
  );
}

function isTimedOut(deployment: Deployment, known: DeploymentCondition | undefined, now: Now): boolean {
  if (known === undefined || known.reason === COMPLETE) return false;
  if (known.reason === TIMED_OUT) return true;
  const since = timeOf(known.lastUpdateTime) ?? now.ms;
  return since + (deployment.spec.progressDeadlineSeconds ?? 0) * 1000 < now.ms;
}

/** When a rollout without progress is to be judged again, in milliseconds; undefined if it need not. Pure. */
export function progressCheckMs(deployment: Deployment, status: DeploymentStatus, now: Now): number | undefined {
  const known = conditionOf(status.conditions, PROGRESSING);
  // While it is paused, nothing is judged: its end is a change of the deployment.
  if (!hasDeadline(deployment) || known === undefined || deployment.spec.paused === true) return undefined;
  if (isComplete(deployment, status) || known.reason === TIMED_OUT || known.reason === COMPLETE) return undefined;
  const since = timeOf(known.lastUpdateTime) ?? now.ms;
  const deadline = since + (deployment.spec.progressDeadlineSeconds ?? 0) * 1000;
  // A second more: the limit has to be over, and times of conditions are whole seconds.
  return Math.max(0, deadline - now.ms) + 1000;
}

/** Conditions of a pause or its end; the same array if there is nothing to say. Pure. */
export function pauseConditions(deployment: Deployment, now: Now): readonly DeploymentCondition[] {
  const conditions = deployment.status?.conditions ?? [];
  const known = conditionOf(conditions, PROGRESSING);
  if (!hasDeadline(deployment) || known?.reason === TIMED_OUT) return conditions;
  const wasPaused = known?.reason === "DeploymentPaused";
  const isPaused = deployment.spec.paused === true;
  if (wasPaused === isPaused) return conditions;
  const [reason, message] = isPaused
    ? ["DeploymentPaused", "Deployment is paused"]
    : ["DeploymentResumed", "Deployment is resumed"];
  return withCondition(conditions, newCondition({ type: PROGRESSING, status: "Unknown", reason, message }, now));
}

function failureOf({ newSet, oldSets }: DeploymentSets): DeploymentCondition | undefined {
  const sets = [...(newSet ? [newSet] : []), ...oldSets];
  const found = sets.map(({ status }) => conditionOf(status?.conditions, "ReplicaFailure")).find((one) => one);
  if (found === undefined) return undefined;
  const { lastTransitionTime } = found;
  return { ...found, ...(lastTransitionTime && { lastUpdateTime: lastTransitionTime }) };
}
