import type { PersistentSource } from "./kind.ts";

/** Where mount options were before PersistentVolumes had a field for them; it still counts first, as in Kubernetes. */
const ANNOTATION = "volume.beta.kubernetes.io/mount-options";

/** The mount options of a PersistentVolume; none for a volume that a pod's spec describes. Pure. */
export function mountOptionsOf(persistent: PersistentSource | undefined): readonly string[] {
  const { metadata, spec } = persistent?.object ?? { metadata: {}, spec: {} };
  const annotated = metadata.annotations?.[ANNOTATION];
  return (annotated === undefined ? (spec.mountOptions ?? []) : annotated.split(",")).filter((one) => one !== "");
}

/** Each option once, in the order of Kubernetes. Pure. */
export function joinOptions(...lists: readonly (readonly string[])[]): readonly string[] {
  return [...new Set(lists.flat())].sort();
}

/** True for filesystems of servers and of daemons, which may not answer. Pure. */
export function isRemoteFilesystem(type: string): boolean {
  return /^(nfs4?|cifs|smb3?|ceph|glusterfs|lustre|beegfs|9p|afs|fuse(\..*)?)$/.test(type);
}
