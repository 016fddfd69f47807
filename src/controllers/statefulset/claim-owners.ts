import { PODS, STATEFUL_SETS } from "../../adapters/kubeapi/index.ts";
import type { OwnerReference, PersistentVolumeClaim, Pod, StatefulSet } from "../../model/generated/types.ts";
import { controllerReference, type Owner } from "../owned-objects.ts";
import { isInRange } from "./ordinals.ts";

export interface ClaimFacts {
  readonly set: StatefulSet;
  readonly pod: Pod;
  readonly ordinal: number;
}

/**
 * The owners that a claim is to have by the retention policy: the set, if the claim goes with it, and the pod, if the claim
 * goes with a pod that is no longer wanted. Undefined if they are right, or if they are not ours to decide. Pure.
 */
export function claimOwners(
  { metadata }: PersistentVolumeClaim,
  { set, pod, ordinal }: ClaimFacts,
): readonly OwnerReference[] | undefined {
  const known = metadata.ownerReferences ?? [];
  const owners: readonly Owner[] = [
    { resource: STATEFUL_SETS, object: set },
    { resource: PODS, object: pod },
  ];
  // A claim of a former set or pod of the same name goes with that.
  if (owners.some((owner) => hasStale(known, owner))) return undefined;
  const { whenDeleted, whenScaled } = set.spec.persistentVolumeClaimRetentionPolicy ?? {};
  const isForeign = ({ controller, uid }: OwnerReference): boolean =>
    controller === true && !owners.some(({ object }) => object.metadata.uid === uid);
  const others = known.filter(({ uid }) => !owners.some(({ object }) => object.metadata.uid === uid));
  const isScaledDown = !isInRange(ordinal, set);
  const wanted = known.some(isForeign)
    ? []
    : [
        ...(whenDeleted === "Delete" && !(whenScaled === "Delete" && isScaledDown) ? owners.slice(0, 1) : []),
        ...(whenScaled === "Delete" && isScaledDown ? owners.slice(1) : []),
      ].map(controllerReference);
  const next = [...others, ...wanted];
  const text = (references: readonly OwnerReference[]): string =>
    JSON.stringify(references.map(({ uid, controller }) => [uid, controller === true]).sort());
  return text(next) === text(known) ? undefined : next;
}

/** Whether a claim belongs to a pod of this name that is gone: it will go with that. Pure. */
export function isStaleClaim({ metadata }: PersistentVolumeClaim, podName: string): boolean {
  return (metadata.ownerReferences ?? []).some(({ kind, name }) => kind === PODS.kind && name === podName);
}

function hasStale(known: readonly OwnerReference[], { resource, object }: Owner): boolean {
  const { name, uid } = object.metadata;
  return known.some((one) => one.kind === resource.kind && one.name === name && one.uid !== uid);
}
