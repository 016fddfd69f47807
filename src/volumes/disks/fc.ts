import { basename } from "node:path";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import type { FCVolumeSource } from "../../model/generated/types.ts";
import type { VolumeOfPod } from "../kind.ts";
import { listLevels } from "../paths.ts";
import type { DiskDriver } from "./disk-driver.ts";
import {
  checkReleased,
  flushMultipath,
  multipathOf,
  mustRun,
  pathsOf,
  removeDisk,
  type ScsiHost,
  writeKernelFile,
} from "./scsi.ts";

const PLUGIN = "kubernetes.io/fc";
const BLOCK = `${PLUGIN}/volumeDevices`;
const BY_PATH = "/dev/disk/by-path";
const BY_ID = "/dev/disk/by-id";
/** After a scan of the buses udev needs a moment for its links, in seconds. */
const SETTLE_S = 5;
/** Writing back what is left of a disk's data, in milliseconds. */
const FLUSH_MS = 60_000;

type Call = Parameters<typeof flushMultipath>[2] & { readonly host: ScsiHost };

/** Disks of Fibre Channel. The adapter is logged in to its fabric by itself: the disk only has to be found. */
export function fcDriver({ log }: { readonly log: Pick<Logger, "warn"> }): DiskDriver {
  return {
    plugin: PLUGIN,
    isRemote: true,
    handles: (volume) => volume.fc !== undefined,
    handlesPersistent: (spec) => spec.fc !== undefined,

    use(of) {
      const { fsType = "", readOnly = false } = sourceOf(of);
      return { fsType, readonly: of.persistent === undefined ? readOnly : of.persistent.readonly };
    },

    metadata: async (of) => ({ disk: nameOf(sourceOf(of)) }),
    directory: ({ disk = "" }, mode) => `${mode === "Block" ? BLOCK : PLUGIN}/${disk}`,

    async list(pluginsDir, mode, host) {
      const base = mode === "Block" ? BLOCK : PLUGIN;
      const names = await listLevels(`${pluginsDir}/${base}`, 1, host);
      return names.filter((name) => name !== basename(BLOCK)).map((name) => `${base}/${name}`);
    },

    uniqueName(of) {
      const { targetWWNs = [], lun, wwids = [] } = sourceOf(of);
      const isByPort = targetWWNs.length > 0 && lun !== undefined;
      return `${PLUGIN}/${isByPort ? `[${targetWWNs.join(" ")}]:${lun}` : `[${wwids.join(" ")}]`}`;
    },

    uniqueNames(directory) {
      const disk = parseName(basename(directory));
      const isByPort = disk.lun !== undefined;
      return [`${PLUGIN}/[${disk.names.join(" ")}]${isByPort ? `:${disk.lun}` : ""}`];
    },

    async attach({ metadata: { disk = "" } }, { host, clock }, options) {
      const call = { host, ...options };
      const known = await find(disk, host);
      if (known?.isMultipath === true) return known.device;
      await scanBuses(call);
      for (let second = 0; ; second++) {
        const found = (await find(disk, host)) ?? known;
        if (found?.isMultipath === true || (found !== undefined && second >= 1)) return found.device;
        if (second >= SETTLE_S) throw new Error("no fc disk found");
        await clock.sleep(1000, options);
      }
    },

    async detach({ directory, device }, deps, options) {
      const { host } = deps;
      const call = { host, ...options };
      // Also one that was unmounted by an agent that died then.
      const found = (await find(basename(directory), host))?.device ?? device;
      if (found === undefined) return;
      const warn = (name: string, error: unknown): void =>
        log.warn("Failed to flush Fibre Channel disk", { device: name, error: messageOf(error) });
      await removeAll(await host.realPath(found), call, warn);
    },
  };
}

function sourceOf({ volume, persistent }: VolumeOfPod): FCVolumeSource {
  const source = persistent?.object.spec.fc ?? volume.fc;
  if (source === undefined) throw new Error(`volume "${volume.name}" is no Fibre Channel volume`);
  return source;
}

/** The name of a disk's directory, as in Kubernetes: `50060e801049cfd1-lun-0`, or its world wide identifiers. Pure. */
function nameOf({ targetWWNs = [], lun, wwids = [] }: FCVolumeSource): string {
  const isByPort = targetWWNs.length > 0 && lun !== undefined;
  const names = isByPort ? targetWWNs : wwids.map((one) => one.replaceAll(" ", "_"));
  if (names.length === 0) throw new Error("fc: no fc disk information found: it needs targetWWNs with lun, or wwids");
  for (const name of names) if (!isName(name)) throw new Error(`fc: ${JSON.stringify(name)} is no name`);
  return `${names.join("-")}${isByPort ? `-lun-${lun}` : ""}`;
}

/** It becomes a part of a path. */
function isName(text: string): boolean {
  return /^[\w.:+]+$/.test(text) && !/^\.+$/.test(text);
}

function parseName(name: string): { readonly names: readonly string[]; readonly lun: number | undefined } {
  const [, ports = name, lun] = /^(.*)-lun-(\d+)$/.exec(name) ?? [];
  return { names: ports.split("-"), lun: lun === undefined ? undefined : Number(lun) };
}

/** The disk by the links of udev; its multipath device if it has one. */
async function find(
  disk: string,
  host: ScsiHost,
): Promise<{ readonly device: string; readonly isMultipath: boolean } | undefined> {
  const { names, lun } = parseName(disk);
  const base = lun === undefined ? BY_ID : BY_PATH;
  const links = await host.list(base);
  let plain: string | undefined;
  for (const name of names) {
    const isIt = (link: string): boolean =>
      lun === undefined
        ? link === `scsi-${name}`
        : (link.startsWith("fc-") || /^pci-.*-fc-/.test(link)) && link.endsWith(`fc-0x${name}-lun-${lun}`);
    const link = links.find(isIt);
    if (link === undefined) continue;
    const device = await host.realPath(`${base}/${link}`);
    const multipath = await multipathOf(device, host);
    if (multipath !== undefined) return { device: multipath, isMultipath: true };
    plain ??= device;
  }
  return plain === undefined ? undefined : { device: plain, isMultipath: false };
}

/** Has every SCSI host look for disks. One that fails does not keep the others. */
async function scanBuses(call: Call): Promise<void> {
  const names = await call.host.list("/sys/class/scsi_host");
  const scans = names.map((name) => writeKernelFile(`/sys/class/scsi_host/${name}/scan`, "- - -", call));
  await Promise.allSettled(scans);
  call.signal.throwIfAborted();
}

async function removeAll(device: string, call: Call, warn: (device: string, error: unknown) => void): Promise<void> {
  const isMultipath = device.startsWith("/dev/dm-");
  await checkReleased(device, call.host, call);
  const disks = isMultipath ? await pathsOf(device, call.host) : [device];
  if (isMultipath) await flushMultipath(device, call.host, call);
  for (const disk of disks) {
    await mustRun(["blockdev", "--flushbufs", disk], call.host, { ...call, timeoutMs: FLUSH_MS }).catch(
      (error: unknown) => {
        call.signal.throwIfAborted();
        warn(disk, error);
      },
    );
    await removeDisk(disk, call.host, call);
  }
}
