import type { CsiCapabilities, CsiStageRequest } from "../../adapters/plugins/csi-client.ts";
import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { CSIDriver, SecretReference } from "../../model/generated/types.ts";
import type { SetUpDeps, VolumeDeps, VolumeHost, VolumeOfPod } from "../kind.ts";
import { removeMountTarget } from "../kind.ts";
import { contextOption } from "../selinux/mount-label.ts";
import type { VolumeLabels } from "../selinux/volume-label.ts";
import type { AttachedVolumes } from "./attachment.ts";
import type { CsiDriver, CsiDrivers } from "./driver.ts";
import { type CsiVolume, csiVolumeOf, useOf } from "./volume.ts";

/** The plugin that volumes of all CSI drivers belong to. */
export const CSI_PLUGIN = "kubernetes.io/csi";
/** Between two attempts at most, in milliseconds: a driver or an attachment may come at any time. */
export const ASK_AGAIN_MS = 5000;

export interface CsiKindDeps {
  readonly drivers: CsiDrivers;
  readonly attached: AttachedVolumes;
  readonly nodeName: string;
  /** The gate for the health of volumes that drivers report. */
  readonly reportsHealth: boolean;
  readonly selinux: VolumeLabels;
}

/** What one step of a volume works with. */
export interface CsiRequest {
  readonly volume: CsiVolume;
  readonly driver: CsiDriver;
  readonly capabilities: CsiCapabilities;
  readonly object: CSIDriver | undefined;
}

/** Finds out what a step needs; `step` is Kubernetes' name of it, for messages. */
export async function csiRequest(
  { of, step }: { readonly of: VolumeOfPod; readonly step: string },
  { drivers, objects }: Pick<CsiKindDeps, "drivers"> & Pick<SetUpDeps, "objects">,
  options: Abortable,
): Promise<CsiRequest> {
  const volume = csiVolumeOf(of);
  const object = await csiDriverObject(volume.driver, { objects }, options);
  const driver = registered(drivers, volume.driver, step);
  return { volume, object, driver, capabilities: await driver.capabilities(options) };
}

export function csiDriverObject(
  name: string,
  { objects }: Pick<VolumeDeps, "objects">,
  options: Abortable,
): Promise<CSIDriver | undefined> {
  return objects.get({ kind: "CSIDriver", namespace: "", name }, options);
}

/** The driver; throws, with the step in Kubernetes' words, while it is not registered. */
export function registered(drivers: CsiDrivers, name: string, step: string): CsiDriver {
  try {
    return drivers.get(name);
  } catch (error) {
    throw new Error(csiMessage(`${step}: ${messageOf(error)}`));
  }
}

/** With the prefix that Kubernetes gives to messages about CSI volumes. */
export function csiMessage(text: string): string {
  return `${CSI_PLUGIN}: ${text}`;
}

/** True if a controller has to attach the volume to the node. */
export function isAttachable({ volume, object }: Pick<CsiRequest, "volume" | "object">): boolean {
  return volume.lifecycle === "Persistent" && object?.spec.attachRequired !== false;
}

/** What staging and publishing have in common. */
export function sharedFields(
  { volume, capabilities }: CsiRequest,
  { pod, stage }: VolumeOfPod,
): Pick<CsiStageRequest, "volumeId" | "use" | "context"> {
  const use = useOf(volume, capabilities, pod);
  const label = stage?.metadata["seLinuxMountContext"];
  const { handle: volumeId, attributes: context } = volume;
  if (label === undefined || use.filesystem === undefined) return { volumeId, use, context };
  const options = [...use.filesystem.options, contextOption(label)];
  return { volumeId, use: { ...use, filesystem: { ...use.filesystem, options } }, context };
}

/** The label of SELinux that the volume is mounted with; undefined if it has none of its own. */
export function labelOf(
  of: VolumeOfPod,
  { selinux, objects }: Pick<CsiKindDeps, "selinux"> & Pick<VolumeDeps, "objects">,
  options: Abortable,
): Promise<string | undefined> {
  const volume = csiVolumeOf(of);
  return selinux.labelOf({
    pod: of.pod,
    name: of.volume.name,
    plugin: `${CSI_PLUGIN}/${volume.driver}`,
    accessModes: volume.lifecycle === "Persistent" ? volume.accessModes : undefined,
    isSupported: async () => {
      const object = await csiDriverObject(volume.driver, { objects }, options);
      return object?.spec.seLinuxMount === true;
    },
  });
}

/** The content of a secret for a driver; none without a reference. */
export async function secretsOf(
  { ref, field }: { readonly ref: SecretReference | undefined; readonly field: string },
  { objects }: Pick<VolumeDeps, "objects">,
  options: Abortable,
): Promise<Readonly<Record<string, string>>> {
  if (ref === undefined) return {};
  const { name = "", namespace = "" } = ref;
  const secret = await objects.get({ kind: "Secret", namespace, name }, { ...options, isOnce: true });
  if (secret === undefined) {
    const cause = `failed to find the secret ${name} in the namespace ${namespace} with error: secrets "${name}" not found`;
    throw new Error(`fetching ${field} ${namespace}/${name} failed: ${csiMessage(cause)}`);
  }
  const texts = Object.entries(secret.data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]);
  return Object.fromEntries(texts) as Record<string, string>; // reason: built from pairs of strings
}

/** Drivers remove what they mounted at; some forget the directory or file. Nothing that is still mounted is ever removed. */
export async function removeTarget(path: string, host: VolumeHost, options: Abortable): Promise<void> {
  if ((await host.mountAt(path)) !== undefined) throw new Error(`the driver left ${path} mounted`);
  await removeMountTarget(path, host, options);
}
