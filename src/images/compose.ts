import { credentialDirectories, NodeCredentials } from "../adapters/host/node-credentials.ts";
import type { ImagePort } from "../adapters/runtime/port.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import { select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { ObjectSource } from "../model/object-source.ts";
import { imageMetrics } from "./image-metrics.ts";
import { pullSecrets } from "./pull-secrets.ts";
import { ImagePuller } from "./puller.ts";

export interface ComposePullerDeps {
  readonly images: ImagePort;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  /** Where pull secrets are read; undefined without an API server. */
  readonly objects: Pick<ObjectSource, "get"> | undefined;
}

const LIVE = [
  ...(["serializeImagePulls", "maxParallelImagePulls", "registryPullQPS", "registryBurst"] as const),
  "imagePullProgressTimeout" as const,
];

/** The image puller as configured, with the credentials of pods and of the node. */
export function composePuller(deps: ComposePullerDeps, signal: AbortSignal): ImagePuller {
  const { images, clock, log, metrics, store, objects } = deps;
  return new ImagePuller(
    {
      images,
      clock,
      counted: imageMetrics(metrics),
      ...(objects && { credentials: pullSecrets({ objects, log }) }),
      nodeCredentials: new NodeCredentials(credentialDirectories(store.current.rootDir)),
    },
    select(store.live(...LIVE), (o) => ({
      parallel: o.serializeImagePulls ? 1 : (o.maxParallelImagePulls ?? 0),
      qps: o.registryPullQPS,
      burst: o.registryBurst,
      progressTimeoutMs: o.imagePullProgressTimeout ?? 0,
    })),
    signal,
  );
}
