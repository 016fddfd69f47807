import { apiVersionOf, PERSISTENT_VOLUME_CLAIMS } from "../../adapters/kubeapi/index.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from "../../model/generated/types.ts";
import { HOSTNAME_LABEL } from "../../model/labels.ts";
import { isDnsSubdomain } from "../../model/names.ts";

/** Makes directories of the node into volumes. */
export const LOCAL_PROVISIONER = "kubelet-ts/local-directory";
/** Keeps a volume until its directory is removed. */
export const DIRECTORY_FINALIZER = "kubelet-ts/local-directory";
export const PROVISIONED_BY = "pv.kubernetes.io/provisioned-by";

export interface NewVolume {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly node: Node;
  /** Where directories of volumes are. */
  readonly root: string;
}

/** The name of the volume of a claim, and of its directory. */
export function volumeNameOf({ metadata }: PersistentVolumeClaim): string {
  return `pvc-${metadata.uid ?? ""}`;
}

/** Why a claim cannot be a directory; undefined if it can. */
export function unprovisionable({ spec }: PersistentVolumeClaim): string | undefined {
  if (spec.volumeMode === "Block") return "a directory cannot be a block device (spec.volumeMode)";
  if (spec.dataSource !== undefined || spec.dataSourceRef !== undefined) {
    return "a directory cannot be made from another source (spec.dataSource)";
  }
  return spec.selector === undefined ? undefined : "claim.Spec.Selector is not supported";
}

/** The volume of a claim, already reserved for it. Pure. */
export function volumeFor({ claim, storageClass, node, root }: NewVolume): PersistentVolume {
  const { namespace = "", name: claimName = "", uid = "", resourceVersion = "" } = claim.metadata;
  const name = volumeNameOf(claim);
  const labels = node.metadata.labels ?? {};
  const hostname = ownValue(labels, HOSTNAME_LABEL) ?? node.metadata.name ?? "";
  const nodeSelectorTerms = [{ matchExpressions: [{ key: HOSTNAME_LABEL, operator: "In", values: [hostname] }] }];
  return {
    metadata: {
      name,
      annotations: { [PROVISIONED_BY]: LOCAL_PROVISIONER },
      finalizers: [DIRECTORY_FINALIZER],
    },
    spec: {
      capacity: { storage: claim.spec.resources?.requests?.storage ?? "0" },
      accessModes: claim.spec.accessModes ?? [],
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? "Delete",
      storageClassName: storageClass.metadata.name ?? "",
      volumeMode: "Filesystem",
      local: { path: `${root}/${name}` },
      nodeAffinity: { required: { nodeSelectorTerms } },
      claimRef: {
        apiVersion: apiVersionOf(PERSISTENT_VOLUME_CLAIMS),
        kind: PERSISTENT_VOLUME_CLAIMS.kind,
        namespace,
        name: claimName,
        uid,
        resourceVersion,
      },
    },
  };
}

export function isOurs({ metadata }: PersistentVolume): boolean {
  return ownValue(metadata.annotations, PROVISIONED_BY) === LOCAL_PROVISIONER;
}

/** The directory that may be removed with a volume: exactly the one that was made for it. Else why not. Pure. */
export function removableDirectory(
  volume: PersistentVolume,
  root: string,
): { readonly name: string } | { readonly problem: string } {
  const { name = "" } = volume.metadata;
  const path = volume.spec.local?.path;
  const isPlain = isDnsSubdomain(name) && path === `${root}/${name}`;
  return isPlain
    ? { name }
    : { problem: `directory ${path ?? ""} of volume ${name} is not below ${root}: not removed` };
}
