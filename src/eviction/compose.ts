import type { agentOptions, OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { LiveValue } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Pod } from "../model/generated/types.ts";
import type { NodeExplanation } from "../model/node-pressure.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import type { PodIdentity } from "../model/step.ts";
import { consumptionOf, type SampledUsage } from "./consumption.ts";
import { EvictionLoop, type EvictionOptions } from "./eviction-loop.ts";
import { Evictions, type PodFailure } from "./evictions.ts";
import type { Consumption } from "./rank.ts";
import type { NodeReclaim } from "./reclaim.ts";
import { type Layout, layoutOf, type NodeSignals, type PressureCondition } from "./signals.ts";
import { StorageLimits } from "./storage-limits.ts";
import { thresholdsOf } from "./thresholds.ts";

/** A pod's worker, as far as eviction needs it. */
export interface EvictableWorker {
  readonly pod: Pod;
  readonly life: {
    readonly phase: string;
    readonly stop: { readonly failure?: PodFailure | undefined } | undefined;
    readonly isWanted: boolean;
  };
  evict(failure: PodFailure, graceSeconds: number): void;
}

/** What eviction is built from. */
export interface EvictionParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly nodeName: string;
  readonly sampler: {
    signals(options: Abortable & { readonly spaceAgeMs: number }): Promise<NodeSignals>;
    sample(options: Abortable): Promise<void>;
    readonly pods: ReadonlyMap<string, SampledUsage>;
  };
  readonly storage: {
    read(
      pods: readonly Pod[],
      options: Abortable & { maxAgeMs?: number; limitMs?: number },
    ): Promise<ReadonlyMap<string, PodStorage>>;
  };
  readonly pool: {
    uids(): readonly string[];
    worker(uid: string): EvictableWorker | undefined;
    isFinished(uid: string): boolean;
    discard(uid: string, what: "all"): Promise<void>;
  };
  readonly observer: { get(uid: string): ObservedPod | undefined };
  readonly journal: {
    of(pod: PodIdentity): {
      event(
        type: "Warning",
        reason: string,
        what: { message: string; annotations: Readonly<Record<string, string>> },
      ): void;
    };
  };
  /** Garbage collection; without it nothing of the node's own is reclaimed. */
  readonly reclaim?: NodeReclaim | undefined;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** Measurements of storage up to this age count for a ranking; how long measuring pods with limits may take. */
const STORAGE_AGE_MS = 10_000;
const LIMITS_MS = 10_000;

/** Eviction: its loops, and its explanation. `pressure` gets the conditions of the node. */
export function composeEviction(
  parts: EvictionParts,
  pressure: LiveValue<readonly PressureCondition[]>,
  signal: AbortSignal,
): { readonly loops: readonly Loop[]; explain(options: Abortable): Promise<NodeExplanation> } {
  const { clock, log, sampler, storage, store, nodeName } = parts;
  const evicted = parts.metrics.counter("kubelet_evictions", "Number of pod evictions by eviction signal.", [
    "eviction_signal",
  ]);
  const age = parts.metrics.histogram(
    "kubelet_eviction_stats_age_seconds",
    "Age of the statistics that an eviction was based on, by eviction signal.",
    ["eviction_signal"],
  );
  const evictions = new Evictions({
    clock,
    log,
    candidates: () => candidatesOf(parts),
    stop: (uid, failure, graceSeconds) => parts.pool.worker(uid)?.evict(failure, graceSeconds),
    isFinished: (uid) => parts.pool.isFinished(uid),
    discard: (uid) => parts.pool.discard(uid, "all"),
    event: (pod, { reason, ...what }) => parts.journal.of(pod).event("Warning", reason, what),
    counted: (by) => evicted.inc([by]),
  });
  let layout: Layout = "single";
  const limits = new StorageLimits({
    clock,
    evictions,
    storage: (pods, options) => storage.read(pods, { ...options, limitMs: LIMITS_MS }),
    layout: () => layout,
    isEnabled: () => store.current.localStorageCapacityIsolation,
  });
  const loop = new EvictionLoop(
    {
      clock,
      log,
      evictions,
      signals: async (options) => {
        const signals = await sampler.signals(options);
        layout = layoutOf(signals);
        return signals;
      },
      consumption: (pods, options) => readConsumption(parts, pods, options),
      reclaim: parts.reclaim ?? NOTHING_TO_RECLAIM,
      evictOverLimits: (options) => limits.check(options),
      event: parts.event,
      acted: (by, seconds) => age.observe(seconds, [by]),
    },
    liveOptions(store, signal),
    pressure,
  );
  return {
    loops: [
      { name: "eviction", run: (stop) => loop.run(stop) },
      { name: "local storage limits", run: (stop) => limits.run(stop) },
    ],
    explain: async (options) => ({ node: nodeName, ...(await loop.explain(options)) }),
  };
}

const NOTHING_TO_RECLAIM: NodeReclaim = {
  deleteAllUnusedContainers: () => Promise.resolve(),
  deleteUnusedImages: () => Promise.resolve(),
};

/** Parsed once for each change of the configuration. */
function liveOptions(store: EvictionParts["store"], signal: AbortSignal): LiveValue<EvictionOptions> {
  const read = (): EvictionOptions => ({
    thresholds: thresholdsOf(store.current),
    transitionMs: store.current.evictionPressureTransitionPeriod,
    maxPodGraceSeconds: store.current.evictionMaxPodGracePeriod,
  });
  const options = new LiveValue(read());
  const names = [
    "evictionHard",
    "evictionSoft",
    "evictionSoftGracePeriod",
    "evictionMinimumReclaim",
    "evictionPressureTransitionPeriod",
    "evictionMaxPodGracePeriod",
  ] as const;
  store.live(...names).onChange(() => options.set(read()), { signal });
  return options;
}

/** Wanted pods that have something running, and are not being failed already. */
function candidatesOf({ pool, observer }: EvictionParts): readonly Pod[] {
  return pool.uids().flatMap((uid): readonly Pod[] => {
    const worker = pool.worker(uid);
    const runs = observer.get(uid)?.sandboxes.some(({ state }) => state === "ready") ?? false;
    if (worker === undefined || !runs) return [];
    const { phase, stop, isWanted } = worker.life;
    const isLive = phase === "syncing" || phase === "stopping";
    return isLive && isWanted && stop?.failure === undefined ? [worker.pod] : [];
  });
}

async function readConsumption(
  { sampler, storage }: EvictionParts,
  pods: readonly Pod[],
  { signal, diskMs }: Abortable & { readonly diskMs: number },
): Promise<Consumption> {
  const [stored] = await Promise.all([
    diskMs > 0 ? storage.read(pods, { signal, maxAgeMs: STORAGE_AGE_MS, limitMs: diskMs }) : undefined,
    sampler.sample({ signal }),
  ]);
  return consumptionOf(pods, sampler.pods, stored);
}
