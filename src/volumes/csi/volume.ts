import { createHash } from "node:crypto";
import type { CsiCapabilities, CsiUse } from "../../adapters/plugins/csi-client.ts";
import type { CSIDriver, CSIPersistentVolumeSource, Pod, SecretReference } from "../../model/generated/types.ts";
import type { VolumeMetadata, VolumeOfPod } from "../kind.ts";
import { migratedField, translateInlineVolume, translatePersistentVolume } from "./translation.ts";

export type Lifecycle = "Persistent" | "Ephemeral";

/** What a volume asks of its driver, whether a PersistentVolume or the pod itself names it. */
export interface CsiVolume {
  readonly driver: string;
  readonly handle: string;
  readonly lifecycle: Lifecycle;
  /** The name of the PersistentVolume, or of the volume in the pod. */
  readonly name: string;
  readonly fsType: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly accessModes: readonly string[];
  readonly mountOptions: readonly string[];
  readonly readonly: boolean;
  readonly isBlock: boolean;
  /** Of an in-tree kind that the driver has taken over. */
  readonly isMigrated: boolean;
  readonly stageSecret: SecretReference | undefined;
  readonly publishSecret: SecretReference | undefined;
  readonly expandSecret: SecretReference | undefined;
}

/** The rule of CSI for names of drivers, which are parts of paths. */
const DRIVER_NAME = /^(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** Returns what the pod's volume asks for. Throws if it is no CSI volume, or names an impossible driver. */
export function csiVolumeOf(of: VolumeOfPod): CsiVolume {
  const volume = requestedVolume(of);
  if (DRIVER_NAME.test(volume.driver)) return volume;
  throw new Error(`volume "${volume.name}": ${JSON.stringify(volume.driver)} is not the name of a CSI driver`);
}

function requestedVolume({ pod, volume, persistent }: VolumeOfPod): CsiVolume {
  const namespace = pod.metadata.namespace ?? "";
  const object = persistent ? translatePersistentVolume(persistent.object) : translateInlineVolume(volume, namespace);
  if (object?.spec.csi !== undefined) {
    const { csi } = object.spec;
    const use = persistent ?? { isBlock: false, readonly: csi.readOnly === true };
    const isMigrated = migratedField(persistent?.object.spec ?? volume) !== undefined;
    return { ...persistentVolume({ ...use, object }, csi), isMigrated };
  }
  const inline = volume.csi;
  if (inline === undefined) throw new Error(`volume "${volume.name}" is no CSI volume`);
  const secret = inline.nodePublishSecretRef?.name;
  return {
    driver: inline.driver,
    handle: `csi-${sha256(`${pod.metadata.uid ?? ""}${volume.name}`)}`,
    lifecycle: "Ephemeral",
    name: volume.name,
    fsType: inline.fsType ?? "",
    attributes: inline.volumeAttributes ?? {},
    accessModes: ["ReadWriteOnce"],
    mountOptions: [],
    readonly: inline.readOnly === true,
    isBlock: false,
    isMigrated: false,
    stageSecret: undefined,
    expandSecret: undefined,
    publishSecret: secret === undefined ? undefined : { name: secret, namespace },
  };
}

function persistentVolume(
  { object, isBlock, readonly }: NonNullable<VolumeOfPod["persistent"]>,
  source: CSIPersistentVolumeSource,
): Omit<CsiVolume, "isMigrated"> {
  const { spec, metadata } = object;
  return {
    driver: source.driver,
    handle: source.volumeHandle,
    lifecycle: "Persistent",
    name: metadata.name ?? "",
    fsType: source.fsType ?? "",
    attributes: source.volumeAttributes ?? {},
    accessModes: spec.accessModes ?? [],
    mountOptions: spec.mountOptions ?? [],
    readonly,
    isBlock,
    stageSecret: source.nodeStageSecretRef,
    publishSecret: source.nodePublishSecretRef,
    expandSecret: source.nodeExpandSecretRef,
  };
}

/** What is persisted of a volume, under the names that Kubernetes gives it in `vol_data.json`. */
export function csiMetadata(volume: CsiVolume, nodeName: string, label?: string): VolumeMetadata {
  const { driver, handle, lifecycle, name } = volume;
  return {
    driverName: driver,
    volumeHandle: handle,
    specVolID: name,
    nodeName,
    volumeLifecycleMode: lifecycle,
    attachmentID: attachmentName(handle, driver, nodeName),
    ...(label !== undefined && { seLinuxMountContext: label }),
  };
}

/** Why a stage cannot be used for a volume: its files have another label of SELinux. */
export function labelConflict(staged: VolumeMetadata, wanted: VolumeMetadata): string | undefined {
  const [is = "", want = ""] = [staged.seLinuxMountContext, wanted.seLinuxMountContext];
  if (is === want) return undefined;
  return `conflicting SELinux labels of volume ${wanted.specVolID ?? ""}: "${is}" and "${want}"`;
}

/** What is persisted beside a stage. */
export function stageMetadata(metadata: VolumeMetadata): VolumeMetadata {
  const { driverName = "", volumeHandle = "", seLinuxMountContext } = metadata;
  return { driverName, volumeHandle, ...(seLinuxMountContext !== undefined && { seLinuxMountContext }) };
}

/** True if the volume may be used by one pod at a time: it has no other access mode. */
export function isExclusive({ accessModes }: CsiVolume): boolean {
  return accessModes.length === 1 && accessModes[0] === "ReadWriteOncePod";
}

/** The name of the VolumeAttachment of a volume on a node. */
export function attachmentName(handle: string, driver: string, nodeName: string): string {
  return `csi-${sha256(`${handle}${driver}${nodeName}`)}`;
}

/** The name under which the attach controller and the node's status know an attached volume. */
export function uniqueName({ driverName = "", volumeHandle = "" }: VolumeMetadata): string {
  return `kubernetes.io/csi/${driverName}^${volumeHandle}`;
}

/** What a name of `uniqueName` was made of; undefined for names of other kinds. Names of drivers have no caret. */
export function parseUniqueName(
  name: string,
): { readonly driverName: string; readonly volumeHandle: string } | undefined {
  const [, driverName, volumeHandle] = /^kubernetes\.io\/csi\/([^/^]+)\^(.*)$/s.exec(name) ?? [];
  return driverName === undefined || volumeHandle === undefined ? undefined : { driverName, volumeHandle };
}

/** Where a volume is staged, relative to `ROOT/plugins`; one that a pod names itself is not. */
export function stageDirectory(metadata: VolumeMetadata): string | undefined {
  const { driverName = "", volumeHandle = "", volumeLifecycleMode } = metadata;
  if (volumeLifecycleMode === "Ephemeral") return undefined;
  return `kubernetes.io/csi/${driverName}/${sha256(volumeHandle)}`;
}

/** The path below a stage's directory that the driver mounts at. */
export function stagePath(directory: string): string {
  return `${directory}/globalmount`;
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

const MODES: Readonly<Record<string, CsiUse["mode"]>> = {
  ReadWriteOnce: "SINGLE_NODE_WRITER",
  ReadOnlyMany: "MULTI_NODE_READER_ONLY",
  ReadWriteMany: "MULTI_NODE_MULTI_WRITER",
  ReadWriteOncePod: "SINGLE_NODE_WRITER",
};
const COUNTED_MODES: Readonly<Record<string, CsiUse["mode"]>> = {
  ReadWriteOnce: "SINGLE_NODE_MULTI_WRITER",
  ReadWriteOncePod: "SINGLE_NODE_SINGLE_WRITER",
};

/** Returns how the volume is to be used: access mode, filesystem, mount flags, and the group if the driver sets it. */
export function useOf(volume: CsiVolume, capabilities: CsiCapabilities, pod: Pod | undefined): CsiUse {
  const mode = volume.accessModes[0] ?? "ReadWriteOnce";
  const counted = capabilities.countsWriters ? COUNTED_MODES[mode] : undefined;
  const group = capabilities.mountsWithGroup ? pod?.spec.securityContext?.fsGroup : undefined;
  return {
    mode: counted ?? MODES[mode] ?? "UNKNOWN",
    filesystem: volume.isBlock
      ? undefined
      : { type: volume.fsType, options: volume.mountOptions, ...(group !== undefined && { group }) },
  };
}

/** True if the agent has to give the volume to the pod's fsGroup: the driver's policy asks for it, and cannot do it. */
export function takesGroup(volume: CsiVolume, capabilities: CsiCapabilities, object: CSIDriver | undefined): boolean {
  if (capabilities.mountsWithGroup || volume.readonly || volume.isBlock) return false;
  const policy = object?.spec.fsGroupPolicy ?? "ReadWriteOnceWithFSType";
  if (policy === "None") return false;
  if (policy === "File") return true;
  const isSingle = volume.accessModes.some((mode) => mode === "ReadWriteOnce" || mode === "ReadWriteOncePod");
  return volume.fsType !== "" && isSingle;
}

/** Throws, in the words of Kubernetes, if the driver does not offer the volume's lifecycle. */
export function checkLifecycle({ driver, lifecycle }: CsiVolume, object: CSIDriver | undefined): void {
  if (object === undefined) {
    if (lifecycle === "Persistent") return;
    throw new Error(`volume mode "${lifecycle}" not supported by driver ${driver} (no CSIDriver object)`);
  }
  const modes = object.spec.volumeLifecycleModes ?? ["Persistent"];
  if (modes.includes(lifecycle)) return;
  const offered = modes.map((mode) => `"${mode}"`).join(" ");
  throw new Error(`volume mode "${lifecycle}" not supported by driver ${driver} (only supports [${offered}])`);
}

/** What the driver is told about the pod, if it asks for that. */
export function podAttributes({ metadata, spec }: Pod, lifecycle: Lifecycle): Readonly<Record<string, string>> {
  return {
    "csi.storage.k8s.io/pod.name": metadata.name ?? "",
    "csi.storage.k8s.io/pod.namespace": metadata.namespace ?? "",
    "csi.storage.k8s.io/pod.uid": metadata.uid ?? "",
    "csi.storage.k8s.io/serviceAccount.name": spec.serviceAccountName ?? "",
    "csi.storage.k8s.io/ephemeral": String(lifecycle === "Ephemeral"),
  };
}
