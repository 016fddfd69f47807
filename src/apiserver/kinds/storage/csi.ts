import { isDeepStrictEqual } from "node:util";
import { CSI_DRIVERS, CSI_NODES, VOLUME_ATTACHMENTS } from "../../../adapters/kubeapi/index.ts";
import type { CSIDriver, CSINode, VolumeAttachment } from "../../../model/generated/types.ts";
import { type FieldError, IMMUTABLE, invalid, required } from "../../status/field-error.ts";
import { AGE, NAME, tableOf } from "../../tables/columns.ts";
import { defineKind } from "../kind.ts";

export const csiDriverKind = defineKind<CSIDriver>({
  resource: CSI_DRIVERS,
  needsVersion: true,
  returnsDeleted: true,
  defaults: (driver) => ({
    ...driver,
    spec: {
      attachRequired: true,
      podInfoOnMount: false,
      storageCapacity: false,
      fsGroupPolicy: "ReadWriteOnceWithFSType",
      requiresRepublish: false,
      seLinuxMount: false,
      volumeLifecycleModes: ["Persistent"],
      ...driver.spec,
    },
  }),
  validateUpdate: (next, old) =>
    (["attachRequired", "volumeLifecycleModes"] as const)
      .filter((field) => !isDeepStrictEqual(next.spec[field], old.spec[field]))
      .map((field) => invalid(`spec.${field}`, next.spec[field], IMMUTABLE)),
  table: tableOf<CSIDriver>([
    NAME,
    { name: "AttachRequired", type: "boolean", cell: ({ spec }) => spec.attachRequired ?? true },
    { name: "PodInfoOnMount", type: "boolean", cell: ({ spec }) => spec.podInfoOnMount ?? false },
    { name: "StorageCapacity", type: "boolean", cell: ({ spec }) => spec.storageCapacity ?? false },
    {
      name: "TokenRequests",
      cell: ({ spec }) => spec.tokenRequests?.map(({ audience }) => audience).join(",") ?? "<unset>",
    },
    { name: "RequiresRepublish", type: "boolean", cell: ({ spec }) => spec.requiresRepublish ?? false },
    { name: "Modes", cell: ({ spec }) => spec.volumeLifecycleModes?.join(",") || "<none>" },
    AGE,
  ]),
});

export const csiNodeKind = defineKind<CSINode>({
  resource: CSI_NODES,
  needsVersion: true,
  returnsDeleted: true,
  validate: ({ spec }) =>
    spec.drivers.flatMap(({ name, nodeID }, index): FieldError[] => [
      ...(name === "" ? [required(`spec.drivers[${index}].name`)] : []),
      ...(nodeID === "" ? [required(`spec.drivers[${index}].nodeID`)] : []),
    ]),
  table: tableOf<CSINode>([NAME, { name: "Drivers", type: "integer", cell: ({ spec }) => spec.drivers.length }, AGE]),
});

export const volumeAttachmentKind = defineKind<VolumeAttachment>({
  resource: VOLUME_ATTACHMENTS,
  needsVersion: true,
  returnsDeleted: true,
  validate: ({ spec }) => [
    ...(spec.attacher === "" ? [required("spec.attacher")] : []),
    ...(spec.nodeName === "" ? [required("spec.nodeName")] : []),
    ...(spec.source.persistentVolumeName === undefined && spec.source.inlineVolumeSpec === undefined
      ? [required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName")]
      : []),
  ],
  validateUpdate: (next, old) =>
    isDeepStrictEqual(next.spec, old.spec) ? [] : [invalid("spec", next.spec, IMMUTABLE)],
  status: {},
  table: tableOf<VolumeAttachment>([
    NAME,
    { name: "Attacher", format: "name", cell: ({ spec }) => spec.attacher },
    { name: "PV", cell: ({ spec }) => spec.source.persistentVolumeName ?? "" },
    { name: "Node", cell: ({ spec }) => spec.nodeName },
    { name: "Attached", type: "boolean", cell: ({ status }) => status?.attached ?? false },
    AGE,
  ]),
});
