import type { PodIdentity } from "./step.ts";

/** A threshold as `kubelet explain --node` shows it. */
export interface ThresholdReport {
  readonly kind: "hard" | "soft";
  /** In bytes or pieces. */
  readonly value: number;
  /** How long it must be met; 0 for a hard one. */
  readonly graceMs: number;
  /** How long it has been met; absent if it is not. */
  readonly metForMs?: number;
}

/** A signal with what is left of it. */
export interface SignalReport {
  readonly signal: string;
  readonly unit: "bytes" | "count";
  readonly available: number;
  readonly capacity: number;
  /** Change a second over the last minute; absent until it is known. */
  readonly perSecond?: number;
  readonly thresholds: readonly ThresholdReport[];
}

/** A pod in the order of eviction. */
export interface RankReport extends PodIdentity {
  readonly priority: number;
  /** Absent if it was not measured. */
  readonly usage?: number;
  readonly request: number;
  /** Why it stands where it stands. */
  readonly why: string;
}

/** Who would be evicted first if the node were short of a resource. */
export interface RankingReport {
  readonly resource: string;
  readonly unit: "bytes" | "count";
  readonly pods: readonly RankReport[];
}

/** An eviction that was made. */
export interface EvictionReport {
  /** Wall-clock milliseconds. */
  readonly at: number;
  readonly pod: PodIdentity;
  readonly signal: string;
  readonly message: string;
}

/** All that `kubelet explain --node` shows. */
export interface NodeExplanation {
  readonly node: string;
  readonly conditions: readonly string[];
  readonly signals: readonly SignalReport[];
  /** Signals that have a threshold and cannot be measured. */
  readonly unmeasured: readonly string[];
  readonly rankings: readonly RankingReport[];
  /** Oldest first, bounded. */
  readonly evictions: readonly EvictionReport[];
}
