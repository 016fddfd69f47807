import { dirname } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import type { PersistentVolume, PersistentVolumeClaim } from "../../model/generated/types.ts";
import type { ObjectRef } from "../../model/object-source.ts";
import type { VolumeDeps, VolumeKind, VolumeOfPod } from "../kind.ts";
import { matchesNode } from "../node-affinity.ts";
import { checkHostPath } from "./host-path.ts";
import { LOCAL_PLUGIN, setUpLocal, tearDownLocal } from "./local.ts";

/** A claim that is bound to a PersistentVolume of the node: a hostPath or a local directory. */
export const persistentVolumeClaim: VolumeKind = {
  plugin: LOCAL_PLUGIN,
  handles: (volume) => volume.persistentVolumeClaim !== undefined,
  references: (of) => ({ objects: [claimRef(of)] }),
  takesGroup: true,

  async setUp(of, deps, options) {
    const { claim, volume } = await resolve(of, deps, options);
    checkMode(claim, volume);
    const { spec } = volume;
    const readonly = of.volume.persistentVolumeClaim?.readOnly === true;
    if (spec.hostPath !== undefined) {
      await checkHostPath(spec.hostPath, deps.host, options);
      return { source: { kind: "path", path: spec.hostPath.path, readonly, isUsers: true } };
    }
    if (spec.local !== undefined) {
      if (!matchesNode(spec.nodeAffinity?.required, deps.node.labels)) {
        throw new Error(`volume "${volume.metadata.name}" belongs to another node (its nodeAffinity)`);
      }
      // The directory is named after the PersistentVolume, not after the pod's volume.
      const directory = `${dirname(of.directory)}/${volume.metadata.name}`;
      return setUpLocal({ path: spec.local.path, directory, readonly }, deps, options);
    }
    throw new Error(`volume "${volume.metadata.name}" is of a kind that is not supported yet`);
  },

  tearDown: tearDownLocal,
};

function claimRef({ pod, volume }: VolumeOfPod): ObjectRef<"PersistentVolumeClaim"> {
  const name = volume.persistentVolumeClaim?.claimName ?? "";
  return { kind: "PersistentVolumeClaim", namespace: pod.metadata.namespace ?? "", name };
}

async function resolve(
  of: VolumeOfPod,
  { objects }: VolumeDeps,
  options: Abortable,
): Promise<{ claim: PersistentVolumeClaim; volume: PersistentVolume }> {
  const ref = claimRef(of);
  const claim = await objects.get(ref, options);
  if (claim === undefined) throw new Error(`persistentvolumeclaim "${ref.name}" not found`);
  if (claim.metadata.deletionTimestamp !== undefined) throw new Error(`PVC is being deleted`);
  const name = claim.spec.volumeName ?? "";
  if (claim.status?.phase !== "Bound" || name === "") throw new Error("PVC is not bound");
  const volume = await objects.get({ kind: "PersistentVolume", namespace: "", name }, options);
  if (volume === undefined) throw new Error(`persistentvolume "${name}" not found`);
  const { claimRef: owner } = volume.spec;
  if (owner?.uid !== undefined && claim.metadata.uid !== undefined && owner.uid !== claim.metadata.uid) {
    throw new Error(`volume "${name}" is bound to another claim (${owner.namespace}/${owner.name})`);
  }
  return { claim, volume };
}

function checkMode(claim: PersistentVolumeClaim, volume: PersistentVolume): void {
  const mode = volume.spec.volumeMode ?? claim.spec.volumeMode ?? "Filesystem";
  if (mode !== "Filesystem")
    throw new Error(`volume "${volume.metadata.name}" has volumeMode ${mode}, which cannot be mounted`);
}
