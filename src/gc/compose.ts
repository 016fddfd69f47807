import { files } from "../adapters/host/files.ts";
import { FilesystemMeter } from "../adapters/host/filesystem-stats.ts";
import { PodHost, type PodHostDeps } from "../adapters/host/pod-host.ts";
import type { ImagePort, RuntimePort } from "../adapters/runtime/port.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Pod } from "../model/generated/types.ts";
import type { ImageReport } from "../model/image-report.ts";
import type { ObservedPod } from "../model/observed.ts";
import { ContainerCollector } from "./containers/container-collector.ts";
import { LogSweeper } from "./containers/log-sweeper.ts";
import { gcMetrics } from "./gc-metrics.ts";
import { GuardedImages } from "./images/guarded-images.ts";
import { ImageCollector } from "./images/image-collector.ts";
import { type HeldReference, imagesOf } from "./images/image-holds.ts";
import { LocalImages } from "./images/local-images.ts";

/** The gate for images that are pulled once for each runtime handler. */
const HANDLER_GATE = "RuntimeClassInImageCriApi";

export interface ComposeGcDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly images: ImagePort;
  readonly host: PodHostDeps;
  readonly runtime: Pick<RuntimePort, "listContainers" | "listSandboxes" | "sandboxImage">;
  readonly desired: {
    readonly isComplete: boolean;
    /** Calls `fn` each time the list of pods becomes complete, until the signal aborts. */
    onComplete(fn: () => void, options: Abortable): void;
    get(uid: string): GcPod | undefined;
    list(): readonly GcPod[];
  };
  readonly observer: { list(): readonly ObservedPod[] };
  /** The newest copy of the API server: a desired pod has the status of when it was published. */
  apiPod(namespace: string, name: string): Pod | undefined;
  /** Called once all is built. */
  pool(): GcPool;
  /** Measures the filesystem at a path of the runtime; the machine's own by default. */
  readonly statFilesystem?: FilesystemMeter["measure"];
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** A pod of a source. */
export interface GcPod {
  readonly uid: string;
  readonly pod: Pod;
  readonly source: string;
}

/** The workers, as garbage collection needs them. */
export interface GcPool {
  /** True when nothing of the pod runs or will run again. */
  isFinished(uid: string): boolean;
  /** Undefined if the pod has no worker. */
  worker(uid: string): object | undefined;
  /** Has the worker of a pod remove terminated containers, or all that the runtime has of a pod that ended. */
  discard(uid: string, what: ReadonlySet<string> | "all"): Promise<void>;
  /** Calls `fn` after each change of a pod's status, until the signal aborts. */
  onStatus(fn: () => void, options: Abortable): void;
}

/** Garbage collection of images and containers, for those who pull, remove or show them. */
export interface GarbageCollection {
  /** The image side of the runtime for those who pull: safe from removals at the same time. */
  readonly images: ImagePort;
  readonly loops: readonly Loop[];
  report(options: Abortable): Promise<ImageReport>;
  /** Removes every unused image that is old enough, as under disk pressure. Resolves to their bytes. */
  deleteUnusedImages(options: Abortable): Promise<number>;
  /** Removes what pods that ended left in the runtime, and logs of pods that are gone, as under disk pressure. */
  deleteAllUnusedContainers(options: Abortable): Promise<void>;
  /** Calls `fn` with the id of each image that was removed, until the signal aborts. */
  onImageRemoved(fn: (imageId: string) => void, options: Abortable): void;
}

/** Garbage collection as configured. */
export function composeGc(
  deps: ComposeGcDeps,
  { containerLogsDir }: { readonly containerLogsDir: string },
  signal: AbortSignal,
): GarbageCollection {
  const guarded = new GuardedImages(deps.images);
  const images = composeImages(deps, guarded, signal);
  const containers = composeContainers(deps, containerLogsDir);
  return {
    images: guarded,
    loops: [
      { name: "image garbage collection", run: (stop) => images.run(stop) },
      {
        name: "container garbage collection",
        run: (stop) => {
          deps.pool().onStatus(() => containers.wake(), { signal: stop });
          deps.desired.onComplete(() => containers.wake(), { signal: stop });
          return containers.run(stop);
        },
      },
    ],
    report: (options) => images.report(options),
    deleteUnusedImages: (options) => images.deleteUnusedImages(options),
    deleteAllUnusedContainers: (options) => containers.deleteAllUnusedContainers(options),
    onImageRemoved: (fn, options) => images.onRemoved(fn, options),
  };
}

function composeImages(deps: ComposeGcDeps, images: GuardedImages, signal: AbortSignal): ImageCollector {
  const { clock, log, store, runtime, event } = deps;
  const local = new LocalImages(files, store.current.rootDir);
  const meter = new FilesystemMeter(clock);
  const collector = new ImageCollector(
    {
      images,
      guard: images,
      runtime,
      clock,
      log,
      event,
      statFilesystem: deps.statFilesystem ?? ((path) => meter.measure(path)),
      wanted: () => wantedImages(deps),
      mounted: () => mountedImages(deps),
      pulling: () => images.pulling,
      localImages: async () => (store.current.keepLocalImages ? local.test() : () => false),
      byHandler: () => isGateOn(HANDLER_GATE, store.current.featureGates),
      isComplete: () => deps.desired.isComplete,
      removed: gcMetrics(deps.metrics).imageRemoved,
    },
    select(
      store.live("imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMinimumGCAge", "imageMaximumGCAge"),
      (o) => ({
        highPercent: o.imageGCHighThresholdPercent,
        lowPercent: o.imageGCLowThresholdPercent,
        minAgeMs: o.imageMinimumGCAge,
        maxAgeMs: o.imageMaximumGCAge,
      }),
    ),
  );
  images.onPulled = (ref) => {
    local.recordPull(ref);
    collector.wake();
  };
  collector.onRemoved((id) => local.recordRemoval(id), { signal });
  return collector;
}

function composeContainers(deps: ComposeGcDeps, containerLogsDir: string): ContainerCollector {
  const { clock, log, store, runtime, desired, observer, event } = deps;
  const host = new PodHost(deps.host);
  const logs = new LogSweeper(
    {
      runtime,
      log,
      files: {
        list: (directory) => host.list(directory),
        readLink: (path) => host.readLink(path),
        hasEntry: async (path) => (await files.stat(path)) !== undefined,
        removeFile: (path) => host.removeFile(path),
        removeTree: (path) => host.removeTree(path),
      },
      isKnown: (uid) => desired.get(uid) !== undefined || deps.pool().worker(uid) !== undefined,
    },
    { podLogsDir: store.current.podLogsDir, containerLogsDir },
  );
  return new ContainerCollector(
    {
      clock,
      log,
      logs,
      event,
      isComplete: () => desired.isComplete,
      observed: () => observer.list(),
      isDispensable: (uid) => isDispensable(deps, uid),
      discard: (uid, what) => deps.pool().discard(uid, what),
    },
    select(store.live("maximumDeadContainers", "minimumContainerTTLDuration"), (o) => ({
      total: o.maximumDeadContainers,
      minAgeMs: o.minimumContainerTTLDuration,
    })),
  );
}

/** The API server has the final status of the pod: after a restart of the agent it is not derived from containers. */
function isDispensable({ desired, pool, apiPod }: ComposeGcDeps, uid: string): boolean {
  const known = desired.get(uid);
  if (known?.source !== "api" || !pool().isFinished(uid)) return false;
  const { namespace = "", name = "" } = known.pod.metadata;
  const copy = apiPod(namespace, name);
  const phase = copy?.metadata.uid === uid ? copy.status?.phase : undefined;
  return phase === "Succeeded" || phase === "Failed";
}

/** Pods that ended hold their images by their containers alone. */
function wantedImages({ desired, pool }: ComposeGcDeps): readonly HeldReference[] {
  return desired.list().flatMap(({ uid, pod }) => (pool().isFinished(uid) ? [] : imagesOf(pod)));
}

function mountedImages({ observer }: ComposeGcDeps): readonly HeldReference[] {
  return observer
    .list()
    .flatMap(({ name, namespace, containers }) =>
      containers
        .flatMap(({ mounts }) => mounts)
        .flatMap(({ image }) => (image === undefined ? [] : [{ reference: image, by: `${namespace}/${name}` }])),
    );
}
