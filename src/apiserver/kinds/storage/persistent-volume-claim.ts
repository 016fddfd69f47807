import { isDeepStrictEqual } from "node:util";
import { PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES } from "../../../adapters/kubeapi/index.ts";
import { ownValue } from "../../../lib/own-value.ts";
import type { PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass } from "../../../model/generated/types.ts";
import { compareAmounts, parseQuantity } from "../../../model/quantity.ts";
import { type FieldError, forbidden, notSupported, required } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { selectorErrors } from "../../validation/selectors.ts";
import { defineKind, type WriteContext } from "../kind.ts";
import { ACCESS_MODES, accessModesText } from "./access-modes.ts";
import { withFinalizer } from "./protection.ts";
import { isDefaultClass } from "./storage-class.ts";

export const persistentVolumeClaimKind = defineKind<PersistentVolumeClaim>({
  resource: PERSISTENT_VOLUME_CLAIMS,
  shortNames: ["pvc"],
  returnsDeleted: true,
  defaults: (claim) => ({
    ...claim,
    spec: { ...claim.spec, volumeMode: claim.spec?.volumeMode ?? "Filesystem" },
    status: { ...claim.status, phase: claim.status?.phase || "Pending" },
  }),
  admit: withDefaultClass,
  prepareCreate: (claim) => ({
    ...claim,
    metadata: withFinalizer(claim.metadata, "kubernetes.io/pvc-protection"),
    status: { phase: "Pending" },
  }),
  validate: ({ spec }) => claimSpecErrors(spec, "spec"),
  validateUpdate: ({ spec }, { spec: old }) => specChange(spec, old),
  status: {},
  table: tableOf<PersistentVolumeClaim>([
    NAME,
    {
      name: "Status",
      cell: ({ metadata, status }) => (metadata.deletionTimestamp ? "Terminating" : (status?.phase ?? "")),
    },
    { name: "Volume", cell: ({ spec }) => spec?.volumeName ?? "" },
    { name: "Capacity", cell: ({ spec, status }) => (spec?.volumeName ? (status?.capacity?.storage ?? "0") : "") },
    {
      name: "Access Modes",
      cell: ({ spec, status }) => (spec?.volumeName ? accessModesText(status?.accessModes) : ""),
    },
    { name: "StorageClass", cell: ({ spec }) => spec?.storageClassName ?? "" },
    { name: "VolumeAttributesClass", cell: ({ spec }) => spec?.volumeAttributesClassName ?? "<unset>" },
    AGE,
    { name: "VolumeMode", isWide: true, cell: ({ spec }) => spec?.volumeMode ?? "<unset>" },
  ]),
});

/** A claim that names no class gets the default one, the newest if there are several. */
function withDefaultClass(claim: PersistentVolumeClaim, { read }: WriteContext): PersistentVolumeClaim {
  const old = ownValue(claim.metadata.annotations ?? {}, "volume.beta.kubernetes.io/storage-class");
  if (claim.spec?.storageClassName !== undefined || old !== undefined) return claim;
  const newestFirst = (a: StorageClass, b: StorageClass): number =>
    (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? "") ||
    (a.metadata.name ?? "").localeCompare(b.metadata.name ?? "");
  const [found] = read.list(STORAGE_CLASSES).filter(isDefaultClass).sort(newestFirst);
  const name = found?.metadata.name;
  return name === undefined ? claim : { ...claim, spec: { ...claim.spec, storageClassName: name } };
}

/** What is wrong with the spec of a claim, or of a template of claims, that is at this path. */
export function claimSpecErrors(spec: PersistentVolumeClaimSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { accessModes = [], selector, volumeMode = "" } = spec;
  if (accessModes.length === 0) errors.push(required(`${path}.accessModes`, "at least 1 access mode is required"));
  for (const mode of accessModes) {
    if (!ACCESS_MODES.includes(mode)) errors.push(notSupported(`${path}.accessModes`, mode, [...ACCESS_MODES].sort()));
  }
  if (selector !== undefined) errors.push(...selectorErrors(selector, `${path}.selector`));
  if (spec.resources?.requests?.storage === undefined) errors.push(required(`${path}.resources[storage]`));
  if (volumeMode !== "Block" && volumeMode !== "Filesystem") {
    errors.push(notSupported(`${path}.volumeMode`, volumeMode, ["Block", "Filesystem"]));
  }
  return errors;
}

/** Only the size may grow, and the volume and the class may be set once. */
function specChange(next: PersistentVolumeClaimSpec, old: PersistentVolumeClaimSpec): FieldError[] {
  const fixed = ({ resources: _size, volumeName, storageClassName, ...rest }: PersistentVolumeClaimSpec): object => ({
    ...rest,
    ...(old.volumeName && { volumeName }),
    ...(old.storageClassName !== undefined && { storageClassName }),
  });
  if (!isDeepStrictEqual(fixed(next), fixed(old))) {
    const message =
      "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    return [forbidden("spec", message)];
  }
  const [size, before] = [next.resources?.requests?.storage, old.resources?.requests?.storage];
  if (size === undefined || before === undefined) return [];
  const isSmaller = compareAmounts(parseQuantity(size), parseQuantity(before)) < 0;
  return isSmaller ? [forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")] : [];
}
