import { thresholdAmount } from "../model/eviction-threshold.ts";
import { CONDITIONS, type Observations, type PressureCondition, SIGNALS } from "./signals.ts";
import { keyOf, type Threshold, thresholdsMet } from "./thresholds.ts";

/** What is remembered between two assessments; all times are monotonic milliseconds. */
export interface EvictionState {
  /** When each threshold that is met was first met, by its key. */
  readonly metSince: ReadonlyMap<string, number>;
  /** When each condition was last observed, or could not be measured after it was. */
  readonly observedAt: ReadonlyMap<PressureCondition, number>;
  /** Those whose grace period was over: they count until their minimum reclaim is there. */
  readonly acted: readonly Threshold[];
}

export const NO_PRESSURE: EvictionState = { metSince: new Map(), observedAt: new Map(), acted: [] };

/** What an assessment depends on, besides the state. */
export interface AssessmentFacts {
  readonly thresholds: readonly Threshold[];
  readonly observations: Observations;
  /** How long a condition stays after it was last observed. */
  readonly transitionMs: number;
  /** Monotonic milliseconds. */
  readonly now: number;
  /**
   * When the last relief of a condition ended: only what was measured after it counts for another one, so that nothing
   * is evicted twice for one shortage.
   */
  readonly relievedAt: ReadonlyMap<PressureCondition, number>;
}

export interface Assessment {
  readonly state: EvictionState;
  readonly conditions: readonly PressureCondition[];
  /** Thresholds to act on, memory first. */
  readonly starved: readonly Threshold[];
}

/** Compares what was measured with the thresholds. Pure. */
export function assess(state: EvictionState, facts: AssessmentFacts): Assessment {
  const { thresholds, observations, now } = facts;
  const met = [...thresholdsMet(thresholds, observations, { reclaim: false })];
  const known = new Set(met.map(keyOf));
  // Settings may have changed since: what is no threshold any more is dropped.
  const current = new Set(thresholds.map(keyOf));
  for (const threshold of thresholdsMet(state.acted, observations, { reclaim: true })) {
    if (current.has(keyOf(threshold)) && !known.has(keyOf(threshold))) met.push(threshold);
  }
  // What cannot be measured at the moment, such as a disk that hangs, is not over.
  const lost = thresholds.filter(({ signal }) => !observations.has(signal));
  const unknown = lost.filter((threshold) => state.metSince.has(keyOf(threshold)));
  const metSince = new Map(
    [...met, ...unknown].map((threshold) => [keyOf(threshold), state.metSince.get(keyOf(threshold)) ?? now]),
  );
  const observed = new Set([...met, ...unknown].map(({ signal }) => SIGNALS[signal].condition));
  const observedAt = new Map([...state.observedAt, ...[...observed].map((condition) => [condition, now] as const)]);
  const isOver = (threshold: Threshold): boolean => now - (metSince.get(keyOf(threshold)) ?? now) >= threshold.graceMs;
  const acted = [...met, ...unknown].filter(isOver);
  return {
    state: { metSince, observedAt, acted },
    conditions: CONDITIONS.filter((condition) => {
      const at = observedAt.get(condition);
      return observed.has(condition) || (at !== undefined && now - at < facts.transitionMs);
    }),
    starved: byUrgency(acted.filter((threshold) => isMeasuredSince(threshold, facts))),
  };
}

function isMeasuredSince({ signal }: Threshold, { observations, relievedAt }: AssessmentFacts): boolean {
  const at = observations.get(signal)?.at.mono ?? Number.NEGATIVE_INFINITY;
  return at > (relievedAt.get(SIGNALS[signal].condition) ?? Number.NEGATIVE_INFINITY);
}

/** Memory before everything else; otherwise in the order of the settings. */
function byUrgency(thresholds: readonly Threshold[]): readonly Threshold[] {
  const isMemory = ({ signal }: Threshold): boolean => SIGNALS[signal].resource === "memory";
  return [...thresholds.filter(isMemory), ...thresholds.filter((one) => !isMemory(one))];
}

/** Interval of checks in milliseconds when nothing is near its threshold, as in Kubernetes. */
export const LONGEST_CHECK_MS = 10_000;

/**
 * The fastest that a resource is expected to be used up, a second, and the intervals of checks for it. Memory is
 * checked every second however far it is: some programs are faster.
 */
const PACE = {
  memory: { perSecond: 2 ** 30, shortestMs: 100, longestMs: 1000 },
  "ephemeral-storage": { perSecond: 2 ** 30, shortestMs: 1000, longestMs: LONGEST_CHECK_MS },
  inodes: { perSecond: 100_000, shortestMs: 1000, longestMs: LONGEST_CHECK_MS },
  pids: { perSecond: 20_000, shortestMs: 250, longestMs: LONGEST_CHECK_MS },
} as const;

/**
 * How long nothing can happen: until the nearest threshold could be crossed at the fastest pace, a grace period ends,
 * or a condition. Far from all thresholds that is the longest interval, near one it is a fraction of a second. With
 * `only`, of the thresholds of one condition. Pure.
 */
export function nextCheckMs(
  { state, conditions }: Assessment,
  facts: AssessmentFacts,
  only?: PressureCondition,
): number {
  const { thresholds, observations, now } = facts;
  let next = LONGEST_CHECK_MS;
  for (const threshold of thresholds) {
    const observed = observations.get(threshold.signal);
    const { condition, resource } = SIGNALS[threshold.signal];
    if (observed === undefined || (only !== undefined && condition !== only)) continue;
    const { perSecond, shortestMs, longestMs } = PACE[resource];
    const distance = observed.available - thresholdAmount(threshold.value, observed.capacity);
    const since = state.metSince.get(keyOf(threshold));
    const left = since === undefined ? (distance / perSecond) * 1000 : since + threshold.graceMs - now;
    next = Math.min(next, longestMs, Math.max(shortestMs, left));
  }
  for (const condition of conditions) {
    const ends = (state.observedAt.get(condition) ?? now) + facts.transitionMs - now;
    if (ends > 0) next = Math.min(next, Math.max(SOONEST_END_MS, ends));
  }
  return next;
}

/** The end of a condition is not watched more closely than this. */
const SOONEST_END_MS = 1000;
