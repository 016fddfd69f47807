import type { ISCSIPersistentVolumeSource, ISCSIVolumeSource } from "../../../model/generated/types.ts";
import type { VolumeHost, VolumeMetadata, VolumeOfPod } from "../../kind.ts";
import { MetadataError, readOrRefuse } from "../../metadata.ts";
import type { DiskMode } from "../disk-driver.ts";

export const ISCSI_PLUGIN = "kubernetes.io/iscsi";
const DEFAULT_PORT = 3260;
const DEFAULT_INTERFACE = "default";
/** The file of Kubernetes in the directory of a stage, below its mount. */
const FILE = "iscsi.json";

/** A logical unit of an iSCSI target, and how it is reached. Holds no secret. */
export interface IscsiDisk {
  /** The PersistentVolume, or the volume of the pod. */
  readonly name: string;
  /** `10.0.0.1:3260`, at least one; several are paths to the same disk. */
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly lun: number;
  /** The interface of open-iscsi that is used, and the one that it is a copy of. */
  readonly interface: string;
  readonly initialInterface: string;
  /** Empty for that of the node. */
  readonly initiatorName: string;
}

/** Returns the disk that the pod's volume asks for. Throws for a source that makes no sense. Pure. */
export function iscsiDiskOf(of: VolumeOfPod): IscsiDisk {
  const source = iscsiSourceOf(of);
  const { iqn, lun, initiatorName = "" } = source;
  const name = of.persistent?.object.metadata.name ?? of.volume.name;
  const portals = [source.targetPortal, ...(source.portals ?? [])].map(withPort);
  const initialInterface = source.iscsiInterface || DEFAULT_INTERFACE;
  // They become parts of a path and words of a command; the API server looks at the target alone.
  for (const part of [...portals, iqn, initialInterface]) {
    if (!/^[^/\s]+$/.test(part) || part.startsWith("-")) throw new Error(`iscsi: ${JSON.stringify(part)} is no name`);
  }
  return {
    name,
    portals: [...new Set(portals)],
    iqn,
    lun,
    initialInterface,
    interface: initiatorName === "" ? initialInterface : `${portals[0]}:${name}`,
    initiatorName,
  };
}

export function iscsiSourceOf({ volume, persistent }: VolumeOfPod): ISCSIVolumeSource | ISCSIPersistentVolumeSource {
  const source = persistent?.object.spec.iscsi ?? volume.iscsi;
  if (source === undefined) throw new Error(`volume "${volume.name}" is no iSCSI volume`);
  return source;
}

/** An address of IPv6 has colons without a port: it must be in brackets, as in Kubernetes. */
function withPort(portal: string): string {
  return portal.includes(":") ? portal : `${portal}:${DEFAULT_PORT}`;
}

/** Where a disk is staged, relative to `ROOT/plugins`, as in Kubernetes. Pure. */
export function iscsiDirectory({ portal, iqn, lun, iface }: VolumeMetadata, mode: DiskMode): string {
  const base = mode === "Block" ? `${ISCSI_PLUGIN}/volumeDevices` : ISCSI_PLUGIN;
  return `${base}/iface-${iface}/${portal}-${iqn}-lun-${lun}`;
}

/** What of a disk its directory tells. Pure. */
export function iscsiMetadata({ portals, iqn, lun, interface: iface }: IscsiDisk): VolumeMetadata {
  return { portal: portals[0] ?? "", iqn, lun: String(lun), iface };
}

/** The disk of a stage by its path alone, with one portal; undefined if it is no stage of ours. Pure. */
export function diskOfPath(directory: string): IscsiDisk | undefined {
  const found = /\/iface-([^/]+)\/([^/]+?)-((?:iqn|eui|naa)\.[^/]+)-lun-(\d+)$/.exec(directory);
  const [, iface = "", portal = "", iqn = "", lun = ""] = found ?? [];
  if (found === null) return undefined;
  return {
    name: "",
    portals: [portal],
    iqn,
    lun: Number(lun),
    interface: iface,
    initialInterface: iface,
    initiatorName: "",
  };
}

/** Persists the disk in the directory of its stage, as Kubernetes does, so that either agent can detach it. */
export async function writeDisk(directory: string, disk: IscsiDisk, host: VolumeHost): Promise<void> {
  const text = JSON.stringify({
    VolName: disk.name,
    Portals: disk.portals,
    Iqn: disk.iqn,
    Lun: String(disk.lun),
    InitIface: disk.initialInterface,
    Iface: disk.interface,
    InitiatorName: disk.initiatorName,
    MetricsProvider: null,
  });
  await host.replaceFile(`${directory}/${FILE}`, `${text}\n`);
}

/** The disk of a stage on which nothing is mounted, by its file, or by its path if that is missing or damaged. */
export async function readDisk(directory: string, host: VolumeHost): Promise<IscsiDisk | undefined> {
  const byPath = diskOfPath(directory);
  const text = await readOrRefuse(`${directory}/${FILE}`, host).catch((error: unknown) => {
    if (error instanceof MetadataError) return undefined;
    throw error;
  });
  if (text === undefined || byPath === undefined) return byPath;
  return { ...byPath, ...parseDisk(text) };
}

export async function removeDiskFile(directory: string, host: VolumeHost): Promise<void> {
  for (const name of await host.list(directory)) {
    if (name === FILE || /^\.iscsi\.json\..*\.tmp$/.test(name)) await host.removeFile(`${directory}/${name}`);
  }
}

function parseDisk(text: string): Partial<IscsiDisk> {
  try {
    const found = JSON.parse(text) as Record<string, unknown>; // reason: each field is checked below
    const { Portals: portals, VolName: name, Iface: iface, InitIface: initial, InitiatorName: initiator } = found;
    return {
      ...(Array.isArray(portals) && portals.length > 0 && portals.every(isText) && { portals }),
      ...(isText(name) && { name }),
      ...(isText(iface) && iface !== "" && { interface: iface }),
      ...(isText(initial) && { initialInterface: initial }),
      ...(isText(initiator) && { initiatorName: initiator }),
    };
  } catch {
    // Cut off by a crash of the original: its path tells enough to log out.
    return {};
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
