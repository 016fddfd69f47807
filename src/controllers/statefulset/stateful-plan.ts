import { ownValue } from "../../lib/own-value.ts";
import type { Pod, StatefulSet, StatefulSetStatus } from "../../model/generated/types.ts";
import { isAvailable, isReady, isTerminal } from "../pod-state.ts";
import { scaledValue } from "../scaled-value.ts";
import { isInRange, ordinalOf, podNameOf, replicasOf, startOrdinal } from "./ordinals.ts";

export const REVISION_LABEL = "controller-revision-hash";
export const POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name";
export const POD_INDEX_LABEL = "apps.kubernetes.io/pod-index";

/** Pods that are created at once; the rest follows when these are there, however many the set asks for. */
const MOST_AT_ONCE = 500;

/** One thing to do for a set. */
export type StatefulAction =
  | { readonly kind: "create"; readonly ordinal: number; readonly revision: "current" | "update" }
  | { readonly kind: "delete"; readonly pod: Pod }
  /** Creates claims that are missing, for a pod that waits. */
  | { readonly kind: "provide"; readonly ordinal: number }
  /** Gives a pod the labels of its identity back. */
  | { readonly kind: "identify"; readonly pod: Pod; readonly ordinal: number };

export interface StatefulFacts {
  readonly set: StatefulSet;
  /** The pods of the set, whatever their number. */
  readonly pods: readonly Pod[];
  /** The name of the revision that all pods are to have. */
  readonly updateRevision: string;
  isDeleting(pod: Pod): boolean;
  readonly nowMs: number;
}

/** What is to be done now, in order. With `OrderedReady` that is at most one change of a pod. Pure. */
export function planStatefulSet(facts: StatefulFacts): readonly StatefulAction[] {
  if (facts.set.metadata.deletionTimestamp !== undefined) return [];
  const actions: StatefulAction[] = [];
  if (planReplicas(facts, actions) === "stop") return actions;
  if (planCondemned(facts, actions) === "stop") return actions;
  if (facts.set.spec.updateStrategy?.type !== "OnDelete") planUpdate(facts, actions);
  return actions;
}

type Progress = "stop" | "go on";

function isOrdered({ spec }: StatefulSet): boolean {
  return spec.podManagementPolicy !== "Parallel";
}

function planReplicas(facts: StatefulFacts, actions: StatefulAction[]): Progress {
  const { set, isDeleting } = facts;
  const ordered = isOrdered(set);
  const byOrdinal = new Map(facts.pods.map((pod) => [ordinalOf(pod, set), pod]));
  const start = startOrdinal(set);
  let created = 0;
  for (let ordinal = start; ordinal < start + replicasOf(set); ordinal++) {
    const pod = byOrdinal.get(ordinal);
    if (pod === undefined) {
      actions.push({ kind: "create", ordinal, revision: revisionFor(set, ordinal) });
      if (ordered || ++created === MOST_AT_ONCE) return "stop";
      continue;
    }
    if (isTerminal(pod)) {
      if (!isDeleting(pod)) actions.push({ kind: "delete", pod });
      if (ordered) return "stop";
      continue;
    }
    if (pod.status?.phase === "Pending") actions.push({ kind: "provide", ordinal });
    if (ordered && (isDeleting(pod) || !isUsable(pod, facts))) return "stop";
    if (!hasIdentity(pod, podNameOf(set, ordinal), ordinal)) actions.push({ kind: "identify", pod, ordinal });
  }
  return "go on";
}

/** Pods beyond the wanted number go from the highest on; one that is not ready blocks the others but not itself. */
function planCondemned(facts: StatefulFacts, actions: StatefulAction[]): Progress {
  const { set, isDeleting } = facts;
  const ordered = isOrdered(set);
  const firstUnavailable = findFirstUnavailable(facts);
  for (const pod of [...condemnedOf(facts)].reverse()) {
    if (isDeleting(pod)) {
      if (ordered) return "stop";
      continue;
    }
    if (ordered && !isUsable(pod, facts) && pod !== firstUnavailable) return "stop";
    actions.push({ kind: "delete", pod });
    if (ordered) return "stop";
  }
  return "go on";
}

function planUpdate(facts: StatefulFacts, actions: StatefulAction[]): void {
  const { set, isDeleting, updateRevision } = facts;
  const rolling = set.spec.updateStrategy?.rollingUpdate;
  const replicas = replicasOf(set);
  const start = startOrdinal(set);
  const byOrdinal = new Map(facts.pods.map((pod) => [ordinalOf(pod, set), pod]));
  const pods = Array.from({ length: replicas }, (_value, index) => byOrdinal.get(start + index));
  if (rolling?.maxUnavailable === undefined) {
    // From the highest on, up to the first that is not up: one below it that is broken is replaced in its turn.
    for (let index = replicas - 1; index >= (rolling?.partition ?? 0); index--) {
      const pod = pods[index];
      // One that has ended goes already.
      const isOld = pod && !isDeleting(pod) && !isTerminal(pod) && revisionOf(pod) !== updateRevision;
      if (isOld) actions.push({ kind: "delete", pod });
      if (isOld || pod === undefined || isUnavailable(pod, facts)) return;
    }
    return;
  }
  const most = Math.max(1, scaledValue(rolling.maxUnavailable, replicas, "down"));
  let allowed = most - pods.filter((pod) => pod === undefined || isUnavailable(pod, facts)).length;
  for (let index = replicas - 1; index >= (rolling.partition ?? 0) && allowed > 0; index--) {
    const pod = pods[index];
    if (pod === undefined || isDeleting(pod) || revisionOf(pod) === updateRevision) continue;
    actions.push({ kind: "delete", pod });
    allowed--;
  }
}

/** Pods below the partition keep the template that the set had before. */
function revisionFor({ spec, status, ...set }: StatefulSet, ordinal: number): "current" | "update" {
  const { type = "RollingUpdate", rollingUpdate } = spec.updateStrategy ?? {};
  const start = startOrdinal({ ...set, spec });
  if (rollingUpdate !== undefined) return ordinal < start + (rollingUpdate.partition ?? 0) ? "current" : "update";
  const isCurrent = type === "RollingUpdate" && ordinal < start + (status?.currentReplicas ?? 0);
  return isCurrent ? "current" : "update";
}

function condemnedOf({ set, pods }: StatefulFacts): readonly Pod[] {
  const found = pods.flatMap((pod) => {
    const ordinal = ordinalOf(pod, set);
    return ordinal === undefined || isInRange(ordinal, set) ? [] : [{ pod, ordinal }];
  });
  return found.sort((a, b) => a.ordinal - b.ordinal).map(({ pod }) => pod);
}

function findFirstUnavailable(facts: StatefulFacts): Pod | undefined {
  const { set } = facts;
  const wanted = facts.pods
    .flatMap((pod) => {
      const ordinal = ordinalOf(pod, set);
      return ordinal !== undefined && isInRange(ordinal, set) ? [{ pod, ordinal }] : [];
    })
    .sort((a, b) => a.ordinal - b.ordinal)
    .map(({ pod }) => pod);
  return [...wanted, ...condemnedOf(facts)].find((pod) => isUnavailable(pod, facts));
}

function isUsable(pod: Pod, { set, nowMs }: StatefulFacts): boolean {
  return pod.status?.phase === "Running" && isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs);
}

function isUnavailable(pod: Pod, { set, nowMs, isDeleting }: StatefulFacts): boolean {
  return isDeleting(pod) || !isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs);
}

function hasIdentity({ metadata }: Pod, name: string, ordinal: number): boolean {
  const { labels } = metadata;
  return ownValue(labels, POD_NAME_LABEL) === name && ownValue(labels, POD_INDEX_LABEL) === String(ordinal);
}

export function revisionOf({ metadata }: Pod): string {
  return ownValue(metadata.labels, REVISION_LABEL) ?? "";
}

export interface StatusFacts extends StatefulFacts {
  readonly currentRevision: string;
  readonly collisionCount: number;
}

/** The status of a set; a complete update makes its revision the current one. Pure. */
export function statefulSetStatus(facts: StatusFacts): StatefulSetStatus {
  const { set, pods, nowMs, isDeleting, currentRevision, updateRevision, collisionCount } = facts;
  const ready = pods.filter((pod) => pod.status?.phase === "Running" && isReady(pod));
  const living = pods.filter((pod) => !isDeleting(pod));
  const { conditions } = set.status ?? {};
  const status = {
    observedGeneration: set.metadata.generation ?? 0,
    replicas: pods.length,
    readyReplicas: ready.length,
    availableReplicas: ready.filter((pod) => isAvailable(pod, set.spec.minReadySeconds ?? 0, nowMs)).length,
    currentReplicas: living.filter((pod) => revisionOf(pod) === currentRevision).length,
    updatedReplicas: living.filter((pod) => revisionOf(pod) === updateRevision).length,
    currentRevision,
    updateRevision,
    collisionCount,
    ...(conditions && { conditions }),
  };
  const counts = [status.updatedReplicas, status.readyReplicas, status.replicas];
  const isComplete = counts.every((count) => count === replicasOf(set));
  if (set.spec.updateStrategy?.type === "OnDelete" || !isComplete) return status;
  return { ...status, currentReplicas: status.updatedReplicas, currentRevision: updateRevision };
}
