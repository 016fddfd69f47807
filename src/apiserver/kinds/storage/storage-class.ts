import { isDeepStrictEqual } from "node:util";
import { STORAGE_CLASSES } from "../../../adapters/kubeapi/index.ts";
import { ownValue } from "../../../lib/own-value.ts";
import type { StorageClass } from "../../../model/generated/types.ts";
import { type FieldError, forbidden, IMMUTABLE, invalid, notSupported, required } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind } from "../kind.ts";

const DEFAULT_ANNOTATIONS = [
  "storageclass.kubernetes.io/is-default-class",
  "storageclass.beta.kubernetes.io/is-default-class",
];
const MODES = ["Immediate", "WaitForFirstConsumer"];

/** True for the class of claims that name none. */
export function isDefaultClass({ metadata }: StorageClass): boolean {
  return DEFAULT_ANNOTATIONS.some((key) => ownValue(metadata.annotations ?? {}, key) === "true");
}

export const storageClassKind = defineKind<StorageClass>({
  resource: STORAGE_CLASSES,
  shortNames: ["sc"],
  returnsDeleted: true,
  defaults: (one) => ({
    ...one,
    reclaimPolicy: one.reclaimPolicy ?? "Delete",
    volumeBindingMode: one.volumeBindingMode ?? "Immediate",
  }),
  validate: ({ provisioner, reclaimPolicy = "", volumeBindingMode = "" }) => {
    const errors: FieldError[] = provisioner === "" ? [required("provisioner", provisioner)] : [];
    if (reclaimPolicy !== "Delete" && reclaimPolicy !== "Retain") {
      errors.push(notSupported("reclaimPolicy", reclaimPolicy, ["Delete", "Retain"]));
    }
    if (!MODES.includes(volumeBindingMode)) errors.push(notSupported("volumeBindingMode", volumeBindingMode, MODES));
    return errors;
  },
  validateUpdate: (next, old) => {
    const errors: FieldError[] = [];
    if (!isDeepStrictEqual(next.parameters, old.parameters)) {
      errors.push(forbidden("parameters", "updates to parameters are forbidden."));
    }
    if (next.provisioner !== old.provisioner) {
      errors.push(forbidden("provisioner", "updates to provisioner are forbidden."));
    }
    if (next.reclaimPolicy !== old.reclaimPolicy) {
      errors.push(forbidden("reclaimPolicy", "updates to reclaimPolicy are forbidden."));
    }
    if (next.volumeBindingMode !== old.volumeBindingMode) {
      errors.push(invalid("volumeBindingMode", next.volumeBindingMode, IMMUTABLE));
    }
    return errors;
  },
  table: tableOf<StorageClass>([
    {
      ...NAME,
      cell: (one) => `${one.metadata.name ?? ""}${isDefaultClass(one) ? " (default)" : ""}`,
    },
    { name: "Provisioner", cell: ({ provisioner }) => provisioner },
    { name: "ReclaimPolicy", cell: ({ reclaimPolicy = "Delete" }) => reclaimPolicy },
    { name: "VolumeBindingMode", cell: ({ volumeBindingMode = "Immediate" }) => volumeBindingMode },
    { name: "AllowVolumeExpansion", cell: ({ allowVolumeExpansion = false }) => allowVolumeExpansion },
    AGE,
  ]),
});
