import type { Deployment, ReplicaSet } from "../../model/generated/types.ts";
import {
  active,
  availableOf,
  compareAge,
  countAnnotation,
  DESIRED_ANNOTATION,
  isRollingUpdate,
  MAX_ANNOTATION,
  maxSurge,
  maxUnavailable,
  oldestFirst,
  sizeOf,
  sum,
  wantedReplicas,
} from "./replica-counts.ts";

/** A size that a set is to get. */
export interface Resize {
  readonly set: ReplicaSet;
  readonly size: number;
}

export interface DeploymentSets {
  readonly newSet: ReplicaSet | undefined;
  readonly oldSets: readonly ReplicaSet[];
}

/** The size of the newest set as far as the surge allows. Pure. */
export function newSetSize(deployment: Deployment, current: number, total: number): number {
  const wanted = wantedReplicas(deployment);
  if (!isRollingUpdate(deployment)) return wanted;
  const room = wanted + maxSurge(deployment) - total;
  return room <= 0 ? current : current + Math.min(room, wanted - current);
}

/** One step of a rolling update: the new set grows if it can, else old ones shrink if they can. Pure. */
export function planRolling(
  deployment: Deployment,
  newSet: ReplicaSet,
  oldSets: readonly ReplicaSet[],
): readonly Resize[] {
  const wanted = wantedReplicas(deployment);
  const current = sizeOf(newSet);
  if (current > wanted) return [{ set: newSet, size: wanted }];
  if (current < wanted) {
    const size = newSetSize(deployment, current, sum([newSet, ...oldSets], sizeOf));
    if (size !== current) return [{ set: newSet, size }];
  }
  return shrinkOld(deployment, newSet, active(oldSets));
}

/** Pods of old sets that are not available go first: that takes nothing from anybody. */
function shrinkOld(deployment: Deployment, newSet: ReplicaSet, oldSets: readonly ReplicaSet[]): readonly Resize[] {
  const minAvailable = wantedReplicas(deployment) - maxUnavailable(deployment);
  const unavailable = sizeOf(newSet) - availableOf(newSet);
  const most = sum([newSet, ...oldSets], sizeOf) - minAvailable - unavailable;
  if (most <= 0) return [];
  const sizes = new Map(oldestFirst(oldSets).map((set) => [set, sizeOf(set)]));
  let cleaned = 0;
  for (const [set, size] of sizes) {
    const unhealthy = Math.min(most - cleaned, size - availableOf(set));
    if (unhealthy <= 0) continue;
    sizes.set(set, size - unhealthy);
    cleaned += unhealthy;
  }
  let spare = sum([newSet, ...oldSets], availableOf) - minAvailable;
  for (const [set, size] of sizes) {
    const fewer = Math.min(size, spare);
    if (fewer <= 0) continue;
    sizes.set(set, size - fewer);
    spare -= fewer;
  }
  return [...sizes].filter(([set, size]) => size !== sizeOf(set)).map(([set, size]) => ({ set, size }));
}

/** Whether the number of wanted pods was changed since the sets were sized. Pure. */
export function isScaling(deployment: Deployment, sets: readonly ReplicaSet[]): boolean {
  const running = active(sets);
  // Several that run are not scaled but ended: the rollout does that.
  if (!isRollingUpdate(deployment) && running.length > 1) return false;
  return running.some((set) => {
    const desired = countAnnotation(set, DESIRED_ANNOTATION);
    return desired !== undefined && desired !== wantedReplicas(deployment);
  });
}

/** Sizes after a change of the number of wanted pods: in the middle of a rollout, all sets change in proportion. Pure. */
export function planScaling(deployment: Deployment, { newSet, oldSets }: DeploymentSets): readonly Resize[] {
  const wanted = wantedReplicas(deployment);
  const all = [...oldSets, ...(newSet ? [newSet] : [])];
  const running = active(all);
  if (running.length <= 1) {
    const [only = newSet ?? oldestFirst(oldSets).at(-1)] = running;
    // Also of the right size: it may be noted for another one.
    return only === undefined ? [] : [{ set: only, size: wanted }];
  }
  if (newSet !== undefined && isSaturated(deployment, newSet)) {
    return active(oldSets).map((set) => ({ set, size: 0 }));
  }
  return isRollingUpdate(deployment) ? proportional(deployment, running) : [];
}

function isSaturated(deployment: Deployment, set: ReplicaSet): boolean {
  const wanted = wantedReplicas(deployment);
  return countAnnotation(set, DESIRED_ANNOTATION) === wanted && sizeOf(set) === wanted && availableOf(set) === wanted;
}

function proportional(deployment: Deployment, sets: readonly ReplicaSet[]): readonly Resize[] {
  const wanted = wantedReplicas(deployment);
  const allowed = wanted > 0 ? wanted + maxSurge(deployment) : 0;
  const toAdd = allowed - sum(sets, sizeOf);
  // The larger first; of equal ones the newer grows and the older shrinks first.
  const order = [...sets].sort((a, b) => sizeOf(b) - sizeOf(a) || (toAdd > 0 ? -compareAge(a, b) : compareAge(a, b)));
  let added = 0;
  const resized = order.map((set) => {
    const share = toAdd === 0 ? 0 : shareOf(set, deployment, { toAdd, added });
    added += share;
    return { set, size: sizeOf(set) + share };
  });
  const [largest, ...others] = resized;
  if (largest === undefined) return [];
  return [{ ...largest, size: Math.max(0, largest.size + toAdd - added) }, ...others];
}

function shareOf(
  set: ReplicaSet,
  deployment: Deployment,
  { toAdd, added }: { readonly toAdd: number; readonly added: number },
): number {
  const left = toAdd - added;
  if (left === 0) return 0;
  const size = sizeOf(set);
  const fraction = fractionOf(set, deployment, size);
  return toAdd > 0 ? Math.min(fraction, left) : Math.max(fraction, left);
}

function fractionOf(set: ReplicaSet, deployment: Deployment, size: number): number {
  const wanted = wantedReplicas(deployment);
  if (wanted === 0) return -size;
  const before = countAnnotation(set, MAX_ANNOTATION) || (deployment.status?.replicas ?? 0);
  if (before === 0) return 0;
  return Math.round((size * (wanted + maxSurge(deployment))) / before) - size;
}
