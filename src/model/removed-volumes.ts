import { ownValue } from "../lib/own-value.ts";

/** Kinds of volumes that Kubernetes had and removed, by their fields, and what there is instead. */
const REMOVED: Readonly<Record<string, string>> = {
  cephfs: "use the CSI driver cephfs.csi.ceph.com",
  flocker: "the project has ended",
  glusterfs: "use a CSI driver, or an NFS export of the volume",
  photonPersistentDisk: "the project has ended",
  quobyte: "use the CSI driver csi.quobyte.com",
  rbd: "use the CSI driver rbd.csi.ceph.com",
  scaleIO: "use the CSI driver csi-vxflexos.dellemc.com",
  storageos: "the project has ended",
};

/** The fields of volumes that no kubelet of this version supports. */
export const REMOVED_VOLUMES: readonly string[] = Object.keys(REMOVED);

/** Why a removed kind is refused, and what to do; undefined for a kind that is not removed. */
export function removedVolume(field: string): string | undefined {
  const advice = ownValue(REMOVED, field);
  return advice && `this kind of volume was removed from Kubernetes; ${advice}`;
}

/** The same for a volume or a PersistentVolume by its source. */
export function removedSource(holder: object): string | undefined {
  const field = REMOVED_VOLUMES.find(
    (name) => ownValue(holder as Readonly<Record<string, unknown>>, name) !== undefined,
  ); // reason: only own fields are asked for
  return field && `${field}: ${removedVolume(field)}`;
}
