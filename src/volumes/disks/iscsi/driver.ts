import type { Abortable } from "../../../lib/abort.ts";
import { messageOf } from "../../../lib/errors.ts";
import { KeyedMutex } from "../../../lib/keyed-mutex.ts";
import type { Logger } from "../../../lib/log.ts";
import type { SetUpDeps, VolumeOfPod } from "../../kind.ts";
import { listLevels } from "../../paths.ts";
import { secretNamespace, secretValues } from "../../secret-values.ts";
import type { DiskDriver } from "../disk-driver.ts";
import { attachIscsi } from "./attach.ts";
import type { ChapSecrets } from "./chap.ts";
import { detachIscsi } from "./detach.ts";
import {
  diskOfPath,
  ISCSI_PLUGIN,
  iscsiDirectory,
  iscsiDiskOf,
  iscsiMetadata,
  iscsiSourceOf,
  readDisk,
  removeDiskFile,
  writeDisk,
} from "./target.ts";

/**
 * Disks of iSCSI targets, by open-iscsi. The disk is persisted before anybody logs in for it, so that whatever happens
 * next can be undone.
 */
export function iscsiDriver({ log }: { readonly log: Pick<Logger, "warn"> }): DiskDriver {
  /** One at a time for a target: nobody logs out while another logs in. */
  const targets = new KeyedMutex();
  return {
    plugin: ISCSI_PLUGIN,
    isRemote: true,
    handles: (volume) => volume.iscsi !== undefined,
    handlesPersistent: (spec) => spec.iscsi !== undefined,

    use(of) {
      const { fsType = "", readOnly = false } = iscsiSourceOf(of);
      return { fsType, readonly: of.persistent === undefined ? readOnly : of.persistent.readonly };
    },

    metadata: async (of) => iscsiMetadata(iscsiDiskOf(of)),
    directory: iscsiDirectory,

    async list(pluginsDir, mode, host) {
      const base = mode === "Block" ? `${ISCSI_PLUGIN}/volumeDevices` : ISCSI_PLUGIN;
      const names = await listLevels(`${pluginsDir}/${base}`, 2, host);
      return names.filter((name) => name.startsWith("iface-")).map((name) => `${base}/${name}`);
    },

    uniqueName(of) {
      const { targetPortal, iqn, lun } = iscsiSourceOf(of);
      return `${ISCSI_PLUGIN}/${targetPortal}:${iqn}:${lun}`;
    },

    /** The controller has the portal as it was written, with its port or without. */
    uniqueNames(directory) {
      const disk = diskOfPath(directory);
      const portals = [disk?.portals[0] ?? "", (disk?.portals[0] ?? "").replace(/:3260$/, "")];
      return disk === undefined
        ? []
        : [...new Set(portals)].map((one) => `${ISCSI_PLUGIN}/${one}:${disk.iqn}:${disk.lun}`);
    },

    async attach({ of, directory }, deps, options) {
      const disk = iscsiDiskOf(of);
      const chap = await chapSecrets(of, deps, options);
      const { host, clock } = deps;
      const inTurn = <T>(work: () => Promise<T>): Promise<T> => targets.run(disk.iqn, work, options);
      await inTurn(async () => {
        await host.makeDir(directory, 0o750);
        await writeDisk(directory, disk, host);
      });
      return attachIscsi(disk, chap, { host, clock, inTurn, ...options });
    },

    async detach({ directory }, { host }, options) {
      const disk = await readDisk(directory, host);
      const failedToRemove = (device: string, error: unknown): void =>
        log.warn("Failed to remove iSCSI device", { device, error: messageOf(error) });
      const work = async (): Promise<void> => {
        if (disk !== undefined) await detachIscsi(disk, directory, { host, failedToRemove, ...options });
        await removeDiskFile(directory, host);
      };
      await targets.run(disk?.iqn ?? directory, work, options);
    },
  };
}

async function chapSecrets(of: VolumeOfPod, { objects }: SetUpDeps, options: Abortable): Promise<ChapSecrets> {
  const { chapAuthDiscovery: discovery = false, chapAuthSession: session = false, secretRef } = iscsiSourceOf(of);
  const name = secretRef?.name ?? "";
  if ((!discovery && !session) || name === "") return { discovery, session, values: {} };
  const namespace = secretNamespace(secretRef, of);
  const values = await secretValues({ namespace, name }, objects, options);
  const texts = new Map([...values].map(([key, bytes]) => [key, String(bytes)]));
  return { discovery, session, values: Object.fromEntries(texts) };
}
