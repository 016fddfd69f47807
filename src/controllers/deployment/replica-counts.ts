import { ownValue } from "../../lib/own-value.ts";
import type { Deployment, ReplicaSet } from "../../model/generated/types.ts";
import { scaledValue } from "../scaled-value.ts";

export const DESIRED_ANNOTATION = "deployment.kubernetes.io/desired-replicas";
export const MAX_ANNOTATION = "deployment.kubernetes.io/max-replicas";

export function isRollingUpdate({ spec }: Deployment): boolean {
  return (spec.strategy?.type ?? "RollingUpdate") === "RollingUpdate";
}

export function wantedReplicas({ spec }: Deployment): number {
  return spec.replicas ?? 1;
}

export function sizeOf({ spec }: ReplicaSet): number {
  return spec.replicas ?? 1;
}

export function availableOf({ status }: ReplicaSet): number {
  return status?.availableReplicas ?? 0;
}

/** How many pods there may be beyond the wanted ones. */
export function maxSurge(deployment: Deployment): number {
  if (!isRollingUpdate(deployment)) return 0;
  const { maxSurge: value } = deployment.spec.strategy?.rollingUpdate ?? {};
  return scaledValue(value, wantedReplicas(deployment), "up");
}

/** How many of the wanted pods may be unavailable; at least one if there may be no more either. */
export function maxUnavailable(deployment: Deployment): number {
  const wanted = wantedReplicas(deployment);
  if (!isRollingUpdate(deployment) || wanted === 0) return 0;
  const { maxUnavailable: value } = deployment.spec.strategy?.rollingUpdate ?? {};
  const unavailable = scaledValue(value, wanted, "down");
  if (unavailable === 0 && maxSurge(deployment) === 0) return 1;
  return Math.min(unavailable, wanted);
}

/** The sum of a number of each set. */
export function sum(sets: readonly ReplicaSet[], of: (set: ReplicaSet) => number): number {
  return sets.reduce((total, set) => total + of(set), 0);
}

/** A number that an annotation of a set has; undefined without it. */
export function countAnnotation({ metadata }: ReplicaSet, key: string): number | undefined {
  const text = ownValue(metadata.annotations, key);
  return text !== undefined && /^-?\d+$/.test(text) ? Number(text) : undefined;
}

export function active(sets: readonly ReplicaSet[]): readonly ReplicaSet[] {
  return sets.filter((set) => sizeOf(set) > 0);
}

/** Sets by age, the oldest first. */
export function oldestFirst(sets: readonly ReplicaSet[]): readonly ReplicaSet[] {
  return [...sets].sort(compareAge);
}

export function compareAge(a: ReplicaSet, b: ReplicaSet): number {
  const [atA, atB] = [a.metadata.creationTimestamp ?? "", b.metadata.creationTimestamp ?? ""];
  const [nameA, nameB] = [a.metadata.name ?? "", b.metadata.name ?? ""];
  return atA < atB ? -1 : atA > atB ? 1 : nameA < nameB ? -1 : nameA > nameB ? 1 : 0;
}
