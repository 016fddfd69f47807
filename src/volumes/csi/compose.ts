import { CsiClient } from "../../adapters/plugins/csi-client.ts";
import type { Clock } from "../../lib/clock.ts";
import { type Live, LiveValue } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import type { Loop } from "../../lib/loop.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { ObjectSource } from "../../model/object-source.ts";
import type { VolumeHost, VolumeKind } from "../kind.ts";
import { VolumePaths } from "../paths.ts";
import { restoreLoop } from "../restore-loop.ts";
import type { VolumeLabels } from "../selinux/volume-label.ts";
import type { NodeVolumes } from "../volumes-in-use.ts";
import { AllocatableUpdates } from "./allocatable.ts";
import { AttachedVolumes } from "./attachment.ts";
import { csiBlockKind } from "./block-kind.ts";
import { BlockPaths } from "./block-paths.ts";
import { CsiDrivers, type CsiNodeReport } from "./driver.ts";
import { findStages } from "./find-stages.ts";
import { csiKind } from "./kind.ts";
import { csiCallMetrics, reconstructionMetrics } from "./metrics.ts";
import { VolumeCalls } from "./volume-calls.ts";

export interface CsiParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly host: VolumeHost;
  readonly objects: ObjectSource;
  readonly nodeName: string;
  readonly rootDir: string;
  readonly metrics?: Metrics;
  readonly reportsHealth: boolean;
  readonly selinux: VolumeLabels;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
  /** Undefined without an API server. */
  readonly report?: CsiNodeReport | undefined;
}

/** CSI as the agent wires it. */
export interface Csi {
  readonly kinds: readonly VolumeKind[];
  /** Handles plugins of the type `CSIPlugin`. */
  readonly drivers: CsiDrivers;
  /** For the node's status; undefined until it is known what an earlier agent left mounted. */
  readonly volumesInUse: Live<readonly string[] | undefined>;
  /** Takes the volumes of each version of the node's status on the API server. */
  nodeVolumes(reported: NodeVolumes): void;
  readonly loops: readonly Loop[];
}

export function composeCsi(parts: CsiParts): Csi {
  const { clock, log, host, nodeName, rootDir } = parts;
  const reported = new LiveValue<NodeVolumes | undefined>(undefined);
  const exhausted = (name: string): void => updates.exhausted(name);
  const attached = new AttachedVolumes({ clock, reported, exhausted });
  const called = csiCallMetrics(parts.metrics);
  const reconstructed = reconstructionMetrics(parts.metrics);
  const drivers = new CsiDrivers({
    log,
    calls: new VolumeCalls(parts.signal),
    connect: ({ name, endpoint }) => new CsiClient(endpoint, (call) => called(name, call)),
    publish: parts.report,
  });
  const updates = new AllocatableUpdates({ ...parts, drivers }, parts.signal);
  const paths = new VolumePaths(rootDir);
  const of = { drivers, attached, nodeName, reportsHealth: parts.reportsHealth, selinux: parts.selinux };
  const block = new BlockPaths(paths);
  const kinds = [csiKind(of), csiBlockKind(of, block)];
  const restore = async (signal: AbortSignal): Promise<void> => {
    const { stages, unnamed } = await findStages({ kinds, paths, block }, { host, log, reconstructed });
    attached.restore(stages, { unnamed, signal });
  };
  const failed = (error: string): void => log.warn("Failed to list staged CSI volumes", { error });
  return {
    kinds,
    drivers,
    volumesInUse: attached.inUse,
    nodeVolumes: (volumes) => reported.set(volumes),
    loops: [restoreLoop("staged CSI volumes", { clock, restore, failed })],
  };
}
