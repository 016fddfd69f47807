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
import { podIdentity } from "../model/pod-facts.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import type { PodIdentity } from "../model/step.ts";
import { consumptionOf, type SampledUsage } from "./consumption.ts";
import { EvictionLoop, type EvictionOptions, HARD_GRACE_SECONDS } from "./eviction-loop.ts";
import { Evictions, type EvictionsDeps, type PodFailure } from "./evictions.ts";
import { EVICTED } from "./message.ts";
import type { Consumption, PodConsumption } from "./rank.ts";
import type { NodeReclaim } from "./reclaim.ts";
import { type Layout, layoutOf, type NodeSignals, type PressureCondition } from "./signals.ts";
import { StorageLimits } from "./storage-limits.ts";
import { thresholdsOf } from "./thresholds.ts";

/** A pod's worker, as far as eviction needs it. */
export interface EvictableWorker {
  /** The pod with the resources that it was allocated, which decide, as in Kubernetes. */
  readonly allocated: Pod;
  readonly life: {
    readonly phase: string;
    readonly stop: { readonly failure?: PodFailure | undefined; readonly graceSeconds: number } | undefined;
    readonly isWanted: boolean;
  };
  /** True once it is known whether an earlier agent began to evict the pod. */
  readonly isAdopted: boolean;
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
  /** Measures files of the processes of a cgroup that were deleted and are still open; absent if nobody can. */
  deletedFiles?(cgroup: string): Promise<NonNullable<PodConsumption["deleted"]>>;
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
/** Descriptors of processes are looked at for this long before others get their turn, in milliseconds. */
const SLICE_MS = 8;

/** Eviction: its loops, and its explanation. `pressure` gets the conditions of the node. */
export function composeEviction(
  parts: EvictionParts,
  pressure: LiveValue<readonly PressureCondition[]>,
  signal: AbortSignal,
): {
  readonly loops: readonly Loop[];
  explain(options: Abortable): Promise<NodeExplanation>;
  /** Takes over the conditions of before this start; true if one of them is a pressure that goes on. */
  inherit(conditions: readonly string[]): boolean;
} {
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
    ending: () => endingOf(parts),
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
    inherit: (conditions) => loop.inherit(conditions),
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
    "enforceNodeAllocatable",
  ] as const;
  store.live(...names).onChange(() => options.set(read()), { signal });
  return options;
}

/**
 * Pods that have something running and are not as good as evicted already. Those that their source no longer has count,
 * too: after a forced deletion a pod may run on for as long as its author chose, and nobody sees it.
 */
function candidatesOf({ pool, observer }: EvictionParts): readonly Pod[] {
  return pool.uids().flatMap((uid): readonly Pod[] => {
    const worker = pool.worker(uid);
    const runs = observer.get(uid)?.sandboxes.some(({ state }) => state === "ready") ?? false;
    if (worker === undefined || !runs) return [];
    const { phase, stop, isWanted } = worker.life;
    const isLive = phase === "syncing" || phase === "stopping";
    const isKnown = isWanted ? worker.isAdopted : (stop?.graceSeconds ?? 0) > HARD_GRACE_SECONDS;
    return isLive && isKnown && !isEvicting(stop) ? [worker.allocated] : [];
  });
}

/**
 * True if an eviction would change nothing. A pod that fails for another reason is still one to evict: past its deadline
 * it may use memory and disk for as long as the grace period that its author chose.
 */
function isEvicting(stop: EvictableWorker["life"]["stop"]): boolean {
  if (stop?.failure === undefined) return false;
  return stop.failure.reason === EVICTED || stop.graceSeconds <= HARD_GRACE_SECONDS;
}

/** Pods whose eviction began, by whichever agent, and has not ended. */
function endingOf({ pool }: EvictionParts): ReturnType<EvictionsDeps["ending"]> {
  return pool.uids().flatMap((uid) => {
    const { stop } = pool.worker(uid)?.life ?? {};
    if (stop?.failure?.reason !== EVICTED || pool.isFinished(uid)) return [];
    return [{ uid, graceSeconds: stop.graceSeconds }];
  });
}

async function readConsumption(
  { clock, sampler, storage, deletedFiles }: EvictionParts,
  pods: readonly Pod[],
  { signal, diskMs }: Abortable & { readonly diskMs: number },
): Promise<Consumption> {
  const [stored] = await Promise.all([
    diskMs > 0 ? storage.read(pods, { signal, maxAgeMs: STORAGE_AGE_MS, limitMs: diskMs }) : undefined,
    sampler.sample({ signal }),
  ]);
  if (stored === undefined) return consumptionOf(pods, sampler.pods, undefined);
  const deleted = new Map<string, NonNullable<PodConsumption["deleted"]>>();
  let began = clock.now().mono;
  for (const pod of pods) {
    const { uid } = podIdentity(pod);
    const cgroup = sampler.pods.get(uid)?.cgroup;
    if (cgroup === undefined || deletedFiles === undefined) continue;
    deleted.set(uid, await deletedFiles(cgroup));
    if (clock.now().mono - began < SLICE_MS) continue;
    await clock.sleep(0, { signal });
    began = clock.now().mono;
  }
  return consumptionOf(pods, sampler.pods, { storage: stored, deleted });
}
