import type { Instant } from "../lib/clock.ts";
import type { ProbeKind, ProbeResult } from "../model/probe.ts";

/** Timing and thresholds of one probe. Times in milliseconds. */
export interface ProbeRules {
  readonly kind: ProbeKind;
  readonly periodMs: number;
  readonly initialDelayMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
  /** Runs only at ticks of the period since the worker was created, as in Kubernetes: no extra rounds. */
  readonly upstreamTiming: boolean;
}

/** A run that counts towards the thresholds, or an additional one between two of those that only counts if it succeeds. */
export type Round = "regular" | "extra";

/** State of a probe for one instance of its container. Times are monotonic milliseconds. */
export interface ProbeState {
  readonly containerId: string;
  readonly result: ProbeResult;
  /** The result is final for this instance: the probe does not run until there is a new container. */
  readonly onHold: boolean;
  /** Consecutive runs with the same outcome. */
  readonly streak: { readonly of: "success" | "failure"; readonly count: number } | undefined;
  /** Earliest run; undefined while the container is not running or its startup probe has not succeeded. */
  readonly eligibleAt: number | undefined;
  readonly regularAt: number;
  /** The next extra round; undefined if there is none left. */
  readonly extraAt: number | undefined;
  readonly lastRunAt: number;
}

/** The container as it was observed. */
export interface ContainerObservation {
  readonly state: "created" | "running" | "exited" | "unknown";
  /** Wall-clock milliseconds. */
  readonly startedAt: number;
  /** True if its startup probe has succeeded, or it has none. */
  readonly started: boolean;
  readonly now: Instant;
  /** Origin of the ticks with the timing of Kubernetes. */
  readonly tickBase: number;
  /** Delay of the first run, which spreads the probes after a restart of the agent. */
  readonly jitterMs: number;
}

/** The interval of extra rounds is this fraction of the period, or of the time since the probe became eligible if that is longer. */
const EXTRA_FACTOR = 10;

const INITIAL: Readonly<Record<ProbeKind, ProbeResult>> = {
  liveness: "success",
  readiness: "failure",
  startup: "unknown",
};

/** Returns the initial state for a new container. `carried`: the probe had succeeded before the agent was restarted. */
export function adopt(rules: ProbeRules, containerId: string, carried: boolean): ProbeState {
  return {
    containerId,
    result: carried ? "success" : INITIAL[rules.kind],
    onHold: carried && rules.kind === "startup",
    streak: undefined,
    eligibleAt: undefined,
    regularAt: 0,
    extraAt: undefined,
    lastRunAt: Number.NEGATIVE_INFINITY,
  };
}

/** Returns the state after an observation of the container, which makes the probe eligible or suspends it. */
export function observe(rules: ProbeRules, state: ProbeState, seen: ContainerObservation): ProbeState {
  if (seen.state === "exited" || seen.state === "unknown") {
    return { ...state, result: "failure", streak: undefined, eligibleAt: undefined };
  }
  const isOpen = seen.state === "running" && (rules.kind === "startup" ? !seen.started : seen.started);
  if (!isOpen || state.onHold) return state.eligibleAt === undefined ? state : { ...state, eligibleAt: undefined };
  if (state.eligibleAt !== undefined) return state;
  const ranMs = Math.max(0, seen.now.wall - seen.startedAt);
  const eligibleAt = seen.now.mono + Math.max(0, rules.initialDelayMs - ranMs);
  return { ...state, eligibleAt, ...firstRuns(rules, state, { ...seen, eligibleAt }) };
}

function firstRuns(
  rules: ProbeRules,
  state: ProbeState,
  { eligibleAt, tickBase, jitterMs }: { eligibleAt: number; tickBase: number; jitterMs: number },
): Pick<ProbeState, "regularAt" | "extraAt"> {
  if (rules.upstreamTiming) {
    const base = tickBase + jitterMs;
    const ticks = Math.max(0, Math.ceil((eligibleAt - base) / rules.periodMs));
    return { regularAt: base + ticks * rules.periodMs, extraAt: undefined };
  }
  // Restored results continue, with the next runs spread over the period.
  if (jitterMs > 0 && state.result === "success") return { regularAt: eligibleAt + jitterMs, extraAt: undefined };
  // The first regular run is a whole period away, so that a failure takes at least threshold × period.
  const regularAt = eligibleAt + rules.periodMs;
  return { regularAt, extraAt: rules.kind === "liveness" || state.result === "success" ? undefined : eligibleAt };
}

/** Returns the next run; undefined until a change of the container makes the probe eligible. */
export function nextRun(state: ProbeState): { readonly at: number; readonly round: Round } | undefined {
  if (state.onHold || state.eligibleAt === undefined) return undefined;
  const { regularAt, extraAt } = state;
  return extraAt !== undefined && extraAt < regularAt
    ? { at: extraAt, round: "extra" }
    : { at: regularAt, round: "regular" };
}

/** Outcome of a run. `error`: the probe could not be executed, which leaves the result unchanged. */
export type RunOutcome = "success" | "failure" | "error";

export interface FinishedRun {
  readonly round: Round;
  readonly outcome: RunOutcome;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Returns the state after a run. */
export function afterRun(rules: ProbeRules, state: ProbeState, run: FinishedRun): ProbeState {
  const { containerId, eligibleAt } = state;
  const { regularAt, extraAt } = schedule(rules, state, run);
  const { result, onHold, streak } = judge(rules, state, run);
  // No spread: this is created for every run, and a spread costs as much as the rest of it.
  return { containerId, result, onHold, streak, eligibleAt, regularAt, extraAt, lastRunAt: run.startedAt };
}

function judge(
  rules: ProbeRules,
  state: ProbeState,
  { round, outcome }: FinishedRun,
): Pick<ProbeState, "result" | "onHold" | "streak"> {
  if (outcome === "error" || (round === "extra" && outcome === "failure")) return state;
  const count = state.streak?.of === outcome ? state.streak.count + 1 : 1;
  const streak = { of: outcome, count };
  const threshold = outcome === "success" ? rules.successThreshold : rules.failureThreshold;
  if (count < threshold) return { result: state.result, onHold: state.onHold, streak };
  const onHold = rules.kind === "startup" || (rules.kind === "liveness" && outcome === "failure");
  return { result: outcome, onHold, streak: onHold ? undefined : streak };
}

function schedule(
  rules: ProbeRules,
  state: ProbeState,
  { round, outcome, startedAt, endedAt }: FinishedRun,
): Pick<ProbeState, "regularAt" | "extraAt"> {
  const counts = round === "regular" || outcome === "success";
  const regularAt = counts ? Math.max(startedAt + rules.periodMs, endedAt) : state.regularAt;
  if (outcome === "success" || state.extraAt === undefined) return { regularAt, extraAt: undefined };
  const waitedMs = startedAt - (state.eligibleAt ?? startedAt);
  const gapMs = Math.max(rules.periodMs, waitedMs) / EXTRA_FACTOR;
  // After ten periods the regular runs are frequent enough.
  return { regularAt, extraAt: gapMs >= rules.periodMs ? undefined : Math.max(startedAt + gapMs, endedAt) };
}

/**
 * Brings the next readiness run forward: a status is being generated for a container that has started and is not ready.
 * Kubernetes triggers a manual run then.
 */
export function trigger(rules: ProbeRules, state: ProbeState, mono: number): ProbeState {
  const { eligibleAt, extraAt, lastRunAt } = state;
  if (rules.kind !== "readiness" || state.result === "success") return state;
  if (state.onHold || eligibleAt === undefined || eligibleAt > mono) return state;
  if (rules.upstreamTiming) return { ...state, regularAt: Math.min(state.regularAt, mono) };
  if (extraAt !== undefined) {
    return { ...state, extraAt: Math.min(extraAt, Math.max(mono, lastRunAt + rules.periodMs / EXTRA_FACTOR)) };
  }
  // With a success threshold above 1, successes count once a period: the next one must not come sooner.
  if (state.streak?.of === "success") return state;
  return { ...state, regularAt: Math.min(state.regularAt, Math.max(mono, lastRunAt + rules.periodMs / EXTRA_FACTOR)) };
}
