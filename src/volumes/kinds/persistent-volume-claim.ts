import type { Abortable } from "../../lib/abort.ts";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../model/generated/types.ts";
import type { ObjectRef } from "../../model/object-source.ts";
import { allContainers } from "../../model/pod-facts.ts";
import type { ClaimedVolume } from "../expansion/claim-expander.ts";
import type {
  PersistentSource,
  ReadyVolume,
  SetUpDeps,
  VolumeCheck,
  VolumeDeps,
  VolumeKind,
  VolumeOfPod,
} from "../kind.ts";

/** A node may neither list nor watch claims and volumes, only ask for those of its pods. */
const ASK_AGAIN_MS = 5000;
/** Sync intervals between two looks at the claim of a running pod: that is when Kubernetes syncs a pod, at the latest. */
const LOOK_SYNCS = 1.5;

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
    const bound = await resolve(of, deps, options);
    const persistent = persistentOf(of, bound);
    checkUse(of, persistent.isBlock);
    const ready = await deps.setUpPersistent({ ...of, persistent }, options);
    const growing = growingOf(of, bound, ready);
    if (growing !== undefined) await deps.expander.whileMounting(growing, options);
    const seen = bound.claim.metadata.resourceVersion;
    return claimed(of, { ready, growing, gid: groupOf(bound.object), seen }, deps);
  },

  async find(of, deps, options) {
    const bound = await resolve(of, deps, options);
    const ready = await deps.findPersistent({ ...of, persistent: persistentOf(of, bound) }, options);
    if (ready === undefined) return undefined;
    const growing = growingOf(of, bound, ready);
    return claimed(of, { ready, growing, gid: groupOf(bound.object), seen: undefined }, deps);
  },
};

/** A claim with the volume that it is bound to. */
interface BoundClaim {
  readonly claim: PersistentVolumeClaim;
  readonly object: PersistentVolume;
}

function persistentOf(of: VolumeOfPod, { claim, object }: BoundClaim): PersistentSource {
  const readonly = of.volume.persistentVolumeClaim?.readOnly === true;
  return { object, isBlock: isBlockVolume(claim, object), readonly };
}

/** The volume with what is needed to grow it; undefined if its kind never grows. */
function growingOf(
  of: VolumeOfPod,
  bound: BoundClaim,
  { expand, plugin = "" }: ReadyVolume,
): ClaimedVolume | undefined {
  if (expand === undefined) return undefined;
  const { readonly } = persistentOf(of, bound);
  return { pod: of.pod, claim: bound.claim, volume: bound.object, readonly, plugin, expand };
}

/** The volume of a claim as its pod gets it: whether the claim has grown is looked at from time to time. */
function claimed(
  of: VolumeOfPod,
  volume: {
    readonly ready: ReadyVolume;
    readonly growing: ClaimedVolume | undefined;
    readonly gid: number | undefined;
    /** The version of the claim that it was grown to; undefined if it is not known whether it has to grow. */
    readonly seen: string | undefined;
  },
  { objects, expander, node }: SetUpDeps,
): ReadyVolume {
  const { ready, growing, gid } = volume;
  const ofClaim = gid === undefined ? ready : { ...ready, gid };
  if (growing === undefined || growing.readonly) return ofClaim;
  let { seen } = volume;
  const run: VolumeCheck["run"] = async (options) => {
    const claim = await objects.get(claimRef(of), options);
    const version = claim?.metadata.resourceVersion;
    // Whoever changes the size of the volume writes it to its claim.
    if (claim === undefined || (version !== undefined && version === seen)) return;
    const name = growing.volume.metadata.name ?? "";
    const now = await objects.get({ kind: "PersistentVolume", namespace: "", name }, options);
    if (now !== undefined) await expander.whileUsed({ ...growing, claim, volume: now }, options);
    seen = version;
  };
  return { ...ofClaim, check: { everyMs: LOOK_SYNCS * node.syncMs, run } };
}

/** The group of the annotation; one that is not a number is ignored, as in Kubernetes. */
function groupOf({ metadata }: PersistentVolume): number | undefined {
  const text = metadata.annotations?.[GID_ANNOTATION] ?? "";
  return /^\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
}

function claimRef({ pod, volume }: VolumeOfPod): ObjectRef<"PersistentVolumeClaim"> {
  const name = volume.persistentVolumeClaim?.claimName ?? `${pod.metadata.name}-${volume.name}`;
  return { kind: "PersistentVolumeClaim", namespace: pod.metadata.namespace ?? "", name };
}

async function resolve(of: VolumeOfPod, { objects }: VolumeDeps, options: Abortable): Promise<BoundClaim> {
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
