import { ownValue } from "../../lib/own-value.ts";
import type { PersistentVolume, PersistentVolumeClaim } from "../../model/generated/types.ts";
import { matchesLabels } from "../../model/label-selector.ts";
import { compareAmounts, parseQuantity } from "../../model/quantity.ts";

const OLD_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class";

type Classed = {
  readonly metadata: PersistentVolume["metadata"];
  readonly spec: { readonly storageClassName?: string };
};

/** The name of the StorageClass of a claim or a volume; empty without one. */
export function classNameOf({ metadata, spec }: Classed): string {
  return ownValue(metadata.annotations, OLD_CLASS_ANNOTATION) ?? spec.storageClassName ?? "";
}

/** Why a claim that names a volume cannot have it, in the words of Kubernetes; undefined if it can. Pure. */
export function misfitOf(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  const { metadata, spec } = volume;
  if (metadata.deletionTimestamp !== undefined)
    return `the volume is marked for deletion ${JSON.stringify(metadata.name)}`;
  if (compareAmounts(sizeOf(volume), requestOf(claim)) < 0) return "requested PV is too small";
  if (classNameOf(volume) !== classNameOf(claim)) return "storageClassName does not match";
  if ((spec.volumeMode ?? "Filesystem") !== (claim.spec.volumeMode ?? "Filesystem")) return "incompatible volumeMode";
  const modes = spec.accessModes ?? [];
  return claim.spec.accessModes?.every((mode) => modes.includes(mode)) === false
    ? "incompatible accessMode"
    : undefined;
}

/** Whether a volume is bound to a claim, or reserved for it by its name. Pure. */
export function isReservedFor({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  const { claimRef } = spec;
  if (claimRef?.name !== metadata.name || claimRef?.namespace !== metadata.namespace) return false;
  return !claimRef?.uid || claimRef.uid === metadata.uid;
}

/** The volume that a claim is to have: one that is reserved for it, else the smallest that fits. Pure. */
export function bestVolume(
  claim: PersistentVolumeClaim,
  volumes: readonly PersistentVolume[],
): PersistentVolume | undefined {
  const reserved = volumes.find((volume) => isReservedFor(volume, claim));
  if (reserved !== undefined) return misfitOf(reserved, claim) === undefined ? reserved : undefined;
  const { selector } = claim.spec;
  const fitting = volumes.filter(
    (volume) =>
      volume.spec.claimRef === undefined &&
      (volume.status?.phase ?? "Available") === "Available" &&
      (selector === undefined || matchesLabels(selector, volume.metadata.labels)) &&
      misfitOf(volume, claim) === undefined,
  );
  const bySize = (a: PersistentVolume, b: PersistentVolume): number =>
    compareAmounts(sizeOf(a), sizeOf(b)) || ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1);
  return [...fitting].sort(bySize)[0];
}

function sizeOf({ spec }: PersistentVolume) {
  return parseQuantity(spec.capacity?.storage ?? "0");
}

function requestOf({ spec }: PersistentVolumeClaim) {
  return parseQuantity(spec.resources?.requests?.storage ?? "0");
}
