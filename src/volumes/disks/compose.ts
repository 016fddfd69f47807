import { DriverDirectories } from "../../adapters/plugins/driver-directories.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Live, LiveValue } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import type { Loop } from "../../lib/loop.ts";
import { FlexDrivers } from "../flex/drivers.ts";
import { FlexFamily, stagedFlexVolumes } from "../flex/family.ts";
import type { VolumeHost, VolumeKind } from "../kind.ts";
import type { KindFamily } from "../kind-list.ts";
import { VolumePaths } from "../paths.ts";
import { restoreLoop } from "../restore-loop.ts";
import type { NodeVolumes, VolumeUse } from "../volumes-in-use.ts";
import { DiskAttachments } from "./disk-attachments.ts";
import type { DiskDriver } from "./disk-driver.ts";
import { blockDiskKind, diskKind } from "./disk-kind.ts";
import { fcDriver } from "./fc.ts";
import { iscsiDriver } from "./iscsi/driver.ts";

export interface DiskParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: VolumeHost;
  readonly rootDir: string;
  /** Where flexVolume drivers are installed. */
  readonly volumePluginDir: string;
  readonly nodeName: string;
  /** True if a controller of the cluster attaches volumes. */
  controllerAttaches(): boolean;
}

/** Disks of a network as the agent wires them. */
export interface Disks {
  readonly kinds: readonly VolumeKind[];
  readonly families: readonly KindFamily[];
  /** For the node's status; undefined until it is known what an earlier agent left mounted. */
  readonly volumesInUse: Live<readonly string[] | undefined>;
  /** Takes the volumes of each version of the node's status on the API server. */
  nodeVolumes(reported: NodeVolumes): void;
  readonly loops: readonly Loop[];
}

export function composeDisks(parts: DiskParts): Disks {
  const { clock, log, host, rootDir, volumePluginDir, nodeName } = parts;
  const reported = new LiveValue<NodeVolumes | undefined>(undefined);
  const attachments = new DiskAttachments({ clock, reported, isManaged: () => parts.controllerAttaches() });
  const drivers = [iscsiDriver({ log }), fcDriver({ log })];
  const flexDrivers = new FlexDrivers(host, volumePluginDir);
  const family = new FlexFamily({ drivers: flexDrivers, attachments, nodeName });
  const installed = new DriverDirectories(
    { clock, log, found: (files) => flexDrivers.found(files) },
    volumePluginDir.replace(/\/+$/, ""),
  );
  const restore = async (): Promise<void> => {
    const { plugins } = new VolumePaths(rootDir);
    const flexible = await stagedFlexVolumes(family, plugins, host);
    attachments.restore([...(await stagedNames(drivers, parts)), ...flexible]);
  };
  const failed = (error: string): void => log.warn("Failed to list attached disks", { error });
  return {
    kinds: drivers.flatMap((driver) => [diskKind(driver, { attachments }), blockDiskKind(driver, { attachments })]),
    families: [family],
    volumesInUse: attachments.inUse,
    nodeVolumes: (volumes) => reported.set(volumes),
    loops: [
      restoreLoop("attached disks", { clock, restore, failed }),
      { name: "flexVolume drivers", run: (signal) => installed.run({ signal }) },
    ],
  };
}

/** What the attach controller may call the disks that are staged: what is mounted must not be detached. */
async function stagedNames(
  drivers: readonly DiskDriver[],
  { host, rootDir }: Pick<DiskParts, "host" | "rootDir">,
): Promise<readonly VolumeUse[]> {
  const { plugins } = new VolumePaths(rootDir);
  const uses: VolumeUse[] = [];
  for (const driver of drivers) {
    for (const mode of ["Filesystem", "Block"] as const) {
      const stages = await driver.list(plugins, mode, host);
      for (const stage of stages.map((one) => `${plugins}/${one}`)) {
        uses.push(...(driver.uniqueNames?.(stage) ?? []).map((name) => ({ name, stage })));
      }
    }
  }
  return uses;
}
