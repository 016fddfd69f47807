import type { KubeApi } from "../adapters/kubeapi/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { EventSink } from "./event-sink.ts";
import type { Informers } from "./informers.ts";
import type { VolumeDirectories } from "./volume-directories.ts";

/** What every controller is built from. */
export interface ControllerDeps {
  /** Reads what must be the newest, and writes. */
  readonly api: KubeApi;
  /** Reads that may be a little old, and changes. */
  readonly informers: Informers;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Logger;
  /** 0 to below 1. */
  readonly random: () => number;
  /** Where volumes of the default StorageClass are; without it none are made. */
  readonly volumes?: VolumeDirectories;
}

/** Builds a controller; its loop runs as long as the agent. */
export type ControllerFactory = (deps: ControllerDeps) => Loop;
