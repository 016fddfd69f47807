import type { Abortable } from "../../lib/abort.ts";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../model/generated/types.ts";
import type { ObjectRef } from "../../model/object-source.ts";
import { allContainers } from "../../model/pod-facts.ts";
import type { VolumeDeps, VolumeKind, VolumeOfPod } from "../kind.ts";

/** A node may neither list nor watch claims and volumes, only ask for those of its pods. */
const ASK_AGAIN_MS = 5000;

/** The finalizer that keeps a claim as long as pods use it. */
const PROTECTION_FINALIZER = "kubernetes.io/pvc-protection";
/** Processes need this group to use the volume. */
const GID_ANNOTATION = "pv.beta.kubernetes.io/gid";

/**
 * A claim that is bound to a PersistentVolume, which is set up by the kind that handles its source. An ephemeral volume
 * is a claim that a controller made for the pod.
 */
export const persistentVolumeClaim: VolumeKind = {
  plugin: "",
  handles: (volume) => volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined,
  references: (of) => ({ objects: [claimRef(of)] }),
  maxBackoffMs: ASK_AGAIN_MS,

  async setUp(of, deps, options) {
    const { claim, object } = await resolve(of, deps, options);
    const isBlock = isBlockVolume(claim, object);
    checkUse(of, isBlock);
    const readonly = of.volume.persistentVolumeClaim?.readOnly === true;
    const ready = await deps.setUpPersistent({ ...of, persistent: { object, isBlock, readonly } }, options);
    const gid = groupOf(object);
    return gid === undefined ? ready : { ...ready, gid };
  },
};

/** The group of the annotation; one that is not a number is ignored, as in Kubernetes. */
function groupOf({ metadata }: PersistentVolume): number | undefined {
  const text = metadata.annotations?.[GID_ANNOTATION] ?? "";
  return /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

function claimRef({ pod, volume }: VolumeOfPod): ObjectRef<"PersistentVolumeClaim"> {
  const name = volume.persistentVolumeClaim?.claimName ?? `${pod.metadata.name}-${volume.name}`;
  return { kind: "PersistentVolumeClaim", namespace: pod.metadata.namespace ?? "", name };
}

async function resolve(
  of: VolumeOfPod,
  { objects }: VolumeDeps,
  options: Abortable,
): Promise<{ claim: PersistentVolumeClaim; object: PersistentVolume }> {
  const ref = claimRef(of);
  const claim = await objects.get(ref, options);
  if (claim === undefined) throw new Error(`persistentvolumeclaim "${ref.name}" not found`);
  // A claim that pods still use stays until they are deleted: their containers may restart meanwhile.
  const isProtected = claim.metadata.finalizers?.includes(PROTECTION_FINALIZER) === true;
  if (claim.metadata.deletionTimestamp !== undefined && !isProtected) throw new Error("PVC is being deleted");
  if (of.volume.ephemeral !== undefined) checkOwner(of.pod, claim);
  const name = claim.spec.volumeName ?? "";
  if (claim.status?.phase !== "Bound" || name === "") throw new Error("PVC is not bound");
  const object = await objects.get({ kind: "PersistentVolume", namespace: "", name }, options);
  if (object === undefined) throw new Error(`persistentvolume "${name}" not found`);
  checkBound(object, claim);
  return { claim, object };
}

/** The binding must be mutual: a claim alone may name any volume. */
function checkBound({ metadata, spec }: PersistentVolume, claim: PersistentVolumeClaim): void {
  const { claimRef: owner } = spec;
  if (owner === undefined)
    throw new Error(`volume "${metadata.name}" is not yet bound to the claim: it has no claimRef`);
  if (owner.uid !== undefined && owner.uid === claim.metadata.uid) return;
  throw new Error(`volume "${metadata.name}" is bound to another claim (${owner.namespace}/${owner.name})`);
}

/** Somebody else's claim may have the name that the pod's own would get. */
function checkOwner({ metadata }: Pod, claim: PersistentVolumeClaim): void {
  const owner = claim.metadata.ownerReferences?.find(({ controller }) => controller === true);
  if (owner?.uid === metadata.uid) return;
  const [name, pod] = [claim.metadata, metadata].map((one) => `${one.namespace}/${one.name}`);
  throw new Error(`PVC ${name} was not created for pod ${pod} (pod is not owner)`);
}

function isBlockVolume(claim: PersistentVolumeClaim, volume: PersistentVolume): boolean {
  return (volume.spec.volumeMode ?? claim.spec.volumeMode ?? "Filesystem") === "Block";
}

/** A device is not mounted and a directory is no device, with the words of Kubernetes. */
function checkUse({ pod, volume }: VolumeOfPod, isBlock: boolean): void {
  const all = allContainers(pod);
  const isIn = (list: readonly { readonly name: string }[] | undefined): boolean =>
    (list ?? []).some(({ name }) => name === volume.name);
  if (isBlock && all.some(({ volumeMounts }) => isIn(volumeMounts)))
    throw new Error(`volume ${volume.name} has volumeMode Block, but is specified in volumeMounts`);
  if (!isBlock && all.some(({ volumeDevices }) => isIn(volumeDevices)))
    throw new Error(`volume ${volume.name} has volumeMode Filesystem, but is specified in volumeDevices`);
}
