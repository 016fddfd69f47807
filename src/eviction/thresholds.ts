import { parseDuration } from "../model/duration.ts";
import {
  isThresholdEnabled,
  parseThresholdValue,
  type ThresholdValue,
  thresholdAmount,
} from "../model/eviction-threshold.ts";
import { amountOf, formatQuantity } from "../model/quantity.ts";
import { isSignal, type Layout, type Observation, type Observations, SIGNALS, type Signal } from "./signals.ts";

/** Pods are evicted while less than this is available. */
export interface Threshold {
  readonly signal: Signal;
  readonly value: ThresholdValue;
  /** How long it must be met, in milliseconds; 0 for a hard threshold. */
  readonly graceMs: number;
  /** How much more than the threshold must be reclaimed. */
  readonly minReclaim?: ThresholdValue;
}

/** The settings that thresholds are made of; the configuration has checked them. */
export interface ThresholdSettings {
  readonly evictionHard: Readonly<Record<string, string>>;
  readonly evictionSoft: Readonly<Record<string, string>>;
  readonly evictionSoftGracePeriod: Readonly<Record<string, string>>;
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>;
  readonly enforceNodeAllocatable: readonly string[];
  /** True if thresholds are not those of what all pods may use, too. */
  readonly experimentalAllocatableIgnoreEviction?: boolean;
}

/** The thresholds of a configuration: the hard ones, the soft ones, and those of what all pods may use. Pure. */
export function thresholdsOf(settings: ThresholdSettings): readonly Threshold[] {
  const reclaims = new Map(values(settings.evictionMinimumReclaim));
  const withReclaim = (signal: Signal): Pick<Threshold, "minReclaim"> => {
    const minReclaim = reclaims.get(signal);
    return minReclaim === undefined ? {} : { minReclaim };
  };
  const hard = enabled(settings.evictionHard).map(
    ([signal, value]): Threshold => ({ signal, value, graceMs: 0, ...withReclaim(signal) }),
  );
  const soft = enabled(settings.evictionSoft).map(([signal, value]): Threshold => {
    const graceMs = parseDuration(settings.evictionSoftGracePeriod[signal] ?? "0s");
    return { signal, value, graceMs, ...withReclaim(signal) };
  });
  const isEnforced =
    settings.enforceNodeAllocatable.includes("pods") && settings.experimentalAllocatableIgnoreEviction !== true;
  const all = [...hard, ...soft];
  const allocatable = all.filter(({ signal, graceMs }) => signal === "memory.available" && graceMs === 0 && isEnforced);
  return [
    ...all,
    ...allocatable.map((threshold): Threshold => ({ ...threshold, signal: "allocatableMemory.available" })),
  ];
}

function enabled(texts: Readonly<Record<string, string>>): readonly (readonly [Signal, ThresholdValue])[] {
  return values(texts).filter(([, value]) => isThresholdEnabled(value));
}

function values(texts: Readonly<Record<string, string>>): readonly (readonly [Signal, ThresholdValue])[] {
  return Object.entries(texts).flatMap(([signal, text]) =>
    isSignal(signal) ? [[signal, parseThresholdValue(text)]] : [],
  );
}

/** The thresholds with those of writable layers, which are always those of the filesystem that holds them. Pure. */
export function withContainerThresholds(thresholds: readonly Threshold[], layout: Layout): readonly Threshold[] {
  const others = thresholds.filter(({ signal }) => !signal.startsWith("containerfs."));
  const holder = layout === "dedicated" ? "imagefs" : "nodefs";
  const copied = others.flatMap((threshold): Threshold[] => {
    if (threshold.signal === `${holder}.available`) return [{ ...threshold, signal: "containerfs.available" }];
    if (threshold.signal === `${holder}.inodesFree`) return [{ ...threshold, signal: "containerfs.inodesFree" }];
    return [];
  });
  return [...others, ...copied];
}

/** The text of a value as messages have it: a quantity as configured, a share as the quantity that it is. */
export function formatValue(value: ThresholdValue, capacity: number): string {
  return formatQuantity("quantity" in value ? value.quantity : amountOf(thresholdAmount(value, capacity), "binary"));
}

/** An amount of a signal's resource as messages have it. */
export function formatAvailable(signal: Signal, amount: number): string {
  const { resource } = SIGNALS[signal];
  return formatQuantity(amountOf(amount, resource === "inodes" || resource === "pids" ? "decimal" : "binary"));
}

/** Less is available than the threshold; with `reclaim`, than the threshold and its minimum reclaim. */
export function isMet(threshold: Threshold, observed: Observation, options: { reclaim: boolean }): boolean {
  const { value, minReclaim } = threshold;
  const more = options.reclaim && minReclaim !== undefined ? thresholdAmount(minReclaim, observed.capacity) : 0;
  return observed.available < thresholdAmount(value, observed.capacity) + more;
}

/** Those that are met; one without an observation is not. */
export function thresholdsMet(
  thresholds: readonly Threshold[],
  observations: Observations,
  options: { reclaim: boolean },
): readonly Threshold[] {
  return thresholds.filter((threshold) => {
    const observed = observations.get(threshold.signal);
    return observed !== undefined && isMet(threshold, observed, options);
  });
}

/** Identifies a threshold: the same settings make the same key. */
export function keyOf({ signal, graceMs, value }: Threshold): string {
  return `${signal} ${graceMs} ${"quantity" in value ? formatQuantity(value.quantity) : value.share}`;
}
