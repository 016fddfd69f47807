import { isDeepStrictEqual } from "node:util";
import { PERSISTENT_VOLUMES } from "../../../adapters/kubeapi/index.ts";
import type { PersistentVolume, PersistentVolumeSpec, PersistentVolumeStatus } from "../../../model/generated/types.ts";
import { type FieldError, forbidden, invalid, notSupported, required } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind } from "../kind.ts";
import { ACCESS_MODES, accessModesText } from "./access-modes.ts";
import { withFinalizer } from "./protection.ts";

/** The fields of a spec that are no source. */
const NOT_A_SOURCE = [
  ...["accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy"],
  ...["storageClassName", "volumeAttributesClassName", "volumeMode"],
];
const RECLAIM = ["Delete", "Recycle", "Retain"];

export const persistentVolumeKind = defineKind<PersistentVolume>({
  resource: PERSISTENT_VOLUMES,
  shortNames: ["pv"],
  returnsDeleted: true,
  defaults: (volume) => {
    const { spec, status } = volume;
    const hostPath = spec?.hostPath && { ...spec.hostPath, type: spec.hostPath.type ?? "" };
    return {
      ...volume,
      spec: {
        ...spec,
        persistentVolumeReclaimPolicy: spec?.persistentVolumeReclaimPolicy || "Retain",
        volumeMode: spec?.volumeMode ?? "Filesystem",
        ...(hostPath && { hostPath }),
      },
      status: { ...status, phase: status?.phase || "Pending" },
    };
  },
  prepareCreate: (volume, { now }) => ({
    ...volume,
    metadata: withFinalizer(volume.metadata, "kubernetes.io/pv-protection"),
    status: { phase: "Pending", lastPhaseTransitionTime: now },
  }),
  validate: ({ spec }) => specErrors(spec),
  validateUpdate: ({ spec }, { spec: old }) => {
    const errors: FieldError[] = [];
    const changed = sourcesOf(old).find((source) => !isDeepStrictEqual(read(spec, source), read(old, source)));
    if (changed !== undefined || !isDeepStrictEqual(sourcesOf(spec), sourcesOf(old))) {
      errors.push(forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"));
    }
    if (spec.volumeMode !== old.volumeMode)
      errors.push(invalid("spec.volumeMode", spec.volumeMode, "field is immutable"));
    return errors;
  },
  status: {
    prepare: (next, old, { now }) => ({ ...next, status: withTransition(next.status ?? {}, old.status ?? {}, now) }),
  },
  table: tableOf<PersistentVolume>([
    NAME,
    { name: "Capacity", cell: ({ spec }) => spec?.capacity?.storage ?? "0" },
    { name: "Access Modes", cell: ({ spec }) => accessModesText(spec?.accessModes) },
    { name: "Reclaim Policy", cell: ({ spec }) => spec?.persistentVolumeReclaimPolicy ?? "" },
    {
      name: "Status",
      cell: ({ metadata, status }) => (metadata.deletionTimestamp ? "Terminating" : (status?.phase ?? "")),
    },
    {
      name: "Claim",
      cell: ({ spec }) => (spec?.claimRef ? `${spec.claimRef.namespace ?? ""}/${spec.claimRef.name ?? ""}` : ""),
    },
    { name: "StorageClass", cell: ({ spec }) => spec?.storageClassName ?? "" },
    { name: "VolumeAttributesClass", cell: ({ spec }) => spec?.volumeAttributesClassName ?? "<unset>" },
    { name: "Reason", cell: ({ status }) => status?.reason ?? "" },
    AGE,
    { name: "VolumeMode", isWide: true, cell: ({ spec }) => spec?.volumeMode ?? "<unset>" },
  ]),
});

function read(spec: PersistentVolumeSpec, name: string): unknown {
  const fields: Readonly<Record<string, unknown>> = { ...spec };
  return fields[name];
}

function sourcesOf(spec: PersistentVolumeSpec): readonly string[] {
  return Object.keys(spec)
    .filter((name) => !NOT_A_SOURCE.includes(name) && read(spec, name) !== undefined)
    .sort();
}

function specErrors(spec: PersistentVolumeSpec): FieldError[] {
  const errors: FieldError[] = [];
  const { accessModes = [], capacity = {} } = spec;
  if (accessModes.length === 0) errors.push(required("spec.accessModes"));
  for (const mode of accessModes) {
    if (!ACCESS_MODES.includes(mode)) errors.push(notSupported("spec.accessModes", mode, [...ACCESS_MODES].sort()));
  }
  if (Object.keys(capacity).length === 0) errors.push(required("spec.capacity"));
  else if (capacity.storage === undefined || Object.keys(capacity).length > 1) {
    errors.push(notSupported("spec.capacity", capacity, ["storage"]));
  }
  const policy = spec.persistentVolumeReclaimPolicy ?? "";
  if (!RECLAIM.includes(policy)) errors.push(notSupported("spec.persistentVolumeReclaimPolicy", policy, RECLAIM));
  const [first, ...others] = sourcesOf(spec);
  if (first === undefined) errors.push(required("spec", "must specify a volume type"));
  for (const name of others) errors.push(forbidden(`spec.${name}`, "may not specify more than 1 volume type"));
  if (spec.local !== undefined && spec.nodeAffinity === undefined) {
    errors.push(required("spec.nodeAffinity", "Local volume requires node affinity"));
  }
  return errors;
}

function withTransition(
  next: PersistentVolumeStatus,
  old: PersistentVolumeStatus,
  now: string,
): PersistentVolumeStatus {
  const at = next.lastPhaseTransitionTime;
  if (next.phase === old.phase) {
    return at || !old.lastPhaseTransitionTime
      ? next
      : { ...next, lastPhaseTransitionTime: old.lastPhaseTransitionTime };
  }
  return at && at !== old.lastPhaseTransitionTime ? next : { ...next, lastPhaseTransitionTime: now };
}
