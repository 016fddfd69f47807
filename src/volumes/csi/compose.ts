import { CsiClient } from "../../adapters/plugins/csi-client.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { type Live, LiveValue } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { type Loop, untilAborted } from "../../lib/loop.ts";
import { directoryName, type VolumeHost, type VolumeKind, type VolumeMetadata } from "../kind.ts";
import { MetadataError, readMetadata } from "../metadata.ts";
import { VolumePaths } from "../paths.ts";
import { AttachedVolumes } from "./attachment.ts";
import { CsiDrivers, type CsiNodeReport } from "./driver.ts";
import { csiKind } from "./kind.ts";

/** After a failed listing of stages the next one comes after this time, in milliseconds. */
const RESTORE_RETRY_MS = 1000;

export interface CsiParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: VolumeHost;
  readonly nodeName: string;
  readonly rootDir: string;
  /** Undefined without an API server. */
  readonly report?: CsiNodeReport | undefined;
}

/** CSI as the agent wires it. */
export interface Csi {
  readonly kind: VolumeKind;
  /** Handles plugins of the type `CSIPlugin`. */
  readonly drivers: CsiDrivers;
  /** For the node's status; undefined until it is known what an earlier agent left mounted. */
  readonly volumesInUse: Live<readonly string[] | undefined>;
  /** The node's status on the API server names these volumes as in use. */
  reportedInUse(names: readonly string[]): void;
  readonly loop: Loop;
}

export function composeCsi({ clock, log, host, nodeName, rootDir, report }: CsiParts): Csi {
  const reported = new LiveValue<readonly string[]>([]);
  const attached = new AttachedVolumes({ clock, reported });
  const drivers = new CsiDrivers({ log, connect: (endpoint) => new CsiClient(endpoint), publish: report });
  const kind = csiKind({ drivers, attached, nodeName });
  const stagedMetadata = async (directory: string): Promise<VolumeMetadata | undefined> => {
    try {
      return await readMetadata(directory, host);
    } catch (error) {
      if (!(error instanceof MetadataError)) throw error;
      log.warn("Failed to read volume metadata", { directory, error: error.message });
      return undefined;
    }
  };
  const restore = async (): Promise<void> => {
    const paths = new VolumePaths(rootDir);
    const names = (await kind.staging?.list(paths.plugins, host)) ?? [];
    const directories = names.map((name) => `${paths.plugins}/${name}`);
    // References of pods, too: the metadata of a stage may be damaged while it is mounted.
    for (const uid of await host.list(paths.pods)) {
      const ofPod = await host.list(`${paths.volumes(uid)}/${directoryName(kind)}`);
      directories.push(...ofPod.map((name) => paths.volume(uid, kind, name)));
    }
    const found = await Promise.all(directories.map(stagedMetadata));
    attached.restore(found.filter((metadata) => metadata !== undefined));
  };
  const run = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      try {
        await restore();
        return await untilAborted(signal);
      } catch (error) {
        log.warn("Failed to list staged CSI volumes", { error: messageOf(error) });
        await clock.sleep(RESTORE_RETRY_MS, { signal }).catch(() => undefined);
      }
    }
  };
  return {
    kind,
    drivers,
    volumesInUse: attached.inUse,
    reportedInUse: (names) => reported.set(names),
    loop: { name: "staged CSI volumes", run },
  };
}
