import { createHash } from "node:crypto";
import type { Abortable } from "../../lib/abort.ts";
import type { FlexPersistentVolumeSource, FlexVolumeSource } from "../../model/generated/types.ts";
import type { SetUpDeps, VolumeOfPod } from "../kind.ts";
import { secretNamespace, secretValues } from "../secret-values.ts";

/** The volume of a pod, or its PersistentVolume, as drivers know it. */
export interface FlexVolume {
  readonly driver: string;
  /** The name of the PersistentVolume, or of the volume in the pod. */
  readonly name: string;
  readonly fsType: string;
  readonly readonly: boolean;
  readonly source: FlexVolumeSource | FlexPersistentVolumeSource;
}

/** A driver's name is a part of paths: of a vendor and the driver, or of the driver alone. */
const DRIVER_NAME = /^([A-Za-z0-9][\w.-]*\/)?[A-Za-z0-9][\w.-]*$/;

/** Pure. */
export function isDriverName(name: string): boolean {
  return DRIVER_NAME.test(name) && !name.startsWith("kubernetes.io/");
}

/** True for options that only the agent sets: an author of pods could write to a read-only volume with one. Pure. */
function isReserved(option: string): boolean {
  const namespace = option.includes("/") ? option.slice(0, option.indexOf("/")) : option;
  return /(^|\.)(kubernetes|k8s)\.io$/i.test(namespace);
}

/**
 * Returns what the pod's volume asks for. Throws if it is no flexVolume, names an impossible driver, or sets options of the
 * agent. Pure.
 */
export function flexVolumeOf({ volume, persistent }: VolumeOfPod): FlexVolume {
  const source = persistent?.object.spec.flexVolume ?? volume.flexVolume;
  if (source === undefined) throw new Error(`volume "${volume.name}" is no flexVolume`);
  const { driver, fsType = "", readOnly = false } = source;
  if (!isDriverName(driver)) throw new Error(`${JSON.stringify(driver)} is not the name of a flexVolume driver`);
  const reserved = persistent === undefined ? Object.keys(source.options ?? {}).find(isReserved) : undefined;
  if (reserved !== undefined)
    throw new Error(`options[${reserved}]: kubernetes.io and k8s.io namespaces are reserved; remove the option`);
  const name = persistent?.object.metadata.name ?? volume.name;
  return { driver, name, fsType, readonly: persistent === undefined ? readOnly : persistent.readonly, source };
}

/** The options of a volume as JSON, with Kubernetes' names; what the volume sets itself counts last. Pure. */
export function optionsOf(volume: FlexVolume, more: Readonly<Record<string, string>> = {}): string {
  const all = {
    "kubernetes.io/fsType": volume.fsType,
    "kubernetes.io/readwrite": volume.readonly ? "ro" : "rw",
    "kubernetes.io/pvOrVolumeName": volume.name,
    ...more,
    ...volume.source.options,
  };
  return JSON.stringify(Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** Which disk of its driver a volume is: a hash of what its options say, as these may be long. Pure. */
export function diskOf({ source }: FlexVolume): string {
  const sorted = Object.entries(source.options ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256").update(JSON.stringify(sorted)).digest("hex");
}

/** What a driver is told of the pod, and the secrets among it. */
export async function podOptions(
  of: VolumeOfPod,
  { objects }: Pick<SetUpDeps, "objects">,
  options: Abortable,
): Promise<{ readonly options: Readonly<Record<string, string>>; readonly secrets: readonly string[] }> {
  const { metadata, spec } = of.pod;
  const { secretRef } = flexVolumeOf(of).source;
  const own = metadata.namespace ?? "";
  const namespace = secretNamespace(secretRef, of);
  const name = secretRef?.name ?? "";
  const values = name === "" ? new Map<string, Buffer>() : await secretValues({ namespace, name }, objects, options);
  const secrets = [...values].map(([key, bytes]) => [key, bytes.toString("base64")] as const);
  const { fsGroup } = spec.securityContext ?? {};
  return {
    options: {
      "kubernetes.io/pod.name": metadata.name ?? "",
      "kubernetes.io/pod.namespace": own,
      "kubernetes.io/pod.uid": metadata.uid ?? "",
      "kubernetes.io/serviceAccount.name": spec.serviceAccountName ?? "",
      ...Object.fromEntries(secrets.map(([key, text]) => [`kubernetes.io/secret/${key}`, text])),
      ...(fsGroup !== undefined && { "kubernetes.io/mounterArgs.FsGroup": String(fsGroup) }),
    },
    secrets: [...[...values.values()].map(String), ...secrets.map(([, text]) => text)],
  };
}
