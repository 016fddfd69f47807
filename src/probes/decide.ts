import type { Instant } from "../lib/clock.ts";
import type { ProbeKind, ProbeResult } from "../model/probe.ts";

/** When and how often one probe runs and what makes it change its mind. Times in milliseconds. */
export interface ProbeRules {
  readonly kind: ProbeKind;
  readonly periodMs: number;
  readonly initialDelayMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
  /** Runs only at ticks of the period since the worker was made, as in Kubernetes: no extra rounds. */
  readonly upstreamTiming: boolean;
}

/** A run that counts, or one between two of those that may only bring good news sooner. */
export type Round = "regular" | "extra";

/** What a probe knows about one instance of its container. Times are monotonic milliseconds. */
export interface ProbeState {
  readonly containerId: string;
  readonly result: ProbeResult;
  /** Decided for this instance: nothing runs until there is another. */
  readonly held: boolean;
  /** Same outcomes in a row. */
  readonly streak: { readonly of: "success" | "failure"; readonly count: number } | undefined;
  /** From when it may run; undefined while the container does not run or the startup probe is in the way. */
  readonly eligibleAt: number | undefined;
  readonly regularAt: number;
  /** The next extra round; undefined when there are no more. */
  readonly extraAt: number | undefined;
  readonly lastRunAt: number;
}

/** What is seen of the container at a moment. */
export interface Sighting {
  readonly state: "created" | "running" | "exited" | "unknown";
  /** Wall-clock milliseconds. */
  readonly startedAt: number;
  /** Its startup probe has succeeded, or it has none. */
  readonly started: boolean;
  readonly now: Instant;
  /** When the period began to be counted: of interest only with the timing of Kubernetes. */
  readonly tickBase: number;
  /** Spreads the first runs after a start of the agent. */
  readonly jitterMs: number;
}

/** Extra rounds are this much closer together than the period, and than the time that the container takes already. */
const EXTRA_FACTOR = 10;

const INITIAL: Readonly<Record<ProbeKind, ProbeResult>> = {
  liveness: "success",
  readiness: "failure",
  startup: "unknown",
};

/** The state for an instance that is seen first (13 item 3). `carried`: an earlier run of the agent had seen it succeed. */
export function adopt(rules: ProbeRules, containerId: string, carried: boolean): ProbeState {
  return {
    containerId,
    result: carried ? "success" : INITIAL[rules.kind],
    held: carried && rules.kind === "startup",
    streak: undefined,
    ...{ eligibleAt: undefined, regularAt: 0, extraAt: undefined, lastRunAt: Number.NEGATIVE_INFINITY },
  };
}

/** The state after a look at the container: opens or shuts the time in which the probe runs (13 items 5, 7, 8). */
export function look(rules: ProbeRules, state: ProbeState, seen: Sighting): ProbeState {
  if (seen.state === "exited" || seen.state === "unknown") {
    return { ...state, result: "failure", streak: undefined, eligibleAt: undefined };
  }
  const isOpen = seen.state === "running" && (rules.kind === "startup" ? !seen.started : seen.started);
  if (!isOpen || state.held) return state.eligibleAt === undefined ? state : { ...state, eligibleAt: undefined };
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
  // What an earlier run of the agent knew goes on, spread over the period.
  if (jitterMs > 0 && state.result === "success") return { regularAt: eligibleAt + jitterMs, extraAt: undefined };
  // The first run that counts is a whole period away, so that threshold × period is never cut short.
  const regularAt = eligibleAt + rules.periodMs;
  return { regularAt, extraAt: rules.kind === "liveness" || state.result === "success" ? undefined : eligibleAt };
}

/** The next run, or undefined while only a change of the container can bring one. */
export function nextRun(state: ProbeState): { readonly at: number; readonly round: Round } | undefined {
  if (state.held || state.eligibleAt === undefined) return undefined;
  const { regularAt, extraAt } = state;
  return extraAt !== undefined && extraAt < regularAt
    ? { at: extraAt, round: "extra" }
    : { at: regularAt, round: "regular" };
}

/** What came of a run. `error`: the probe itself could not be made, which says nothing about the container. */
export type RunOutcome = "success" | "failure" | "error";

export interface FinishedRun {
  readonly round: Round;
  readonly outcome: RunOutcome;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** The state after a run (13 items 4, 9, 10). */
export function afterRun(rules: ProbeRules, state: ProbeState, run: FinishedRun): ProbeState {
  const { containerId, eligibleAt } = state;
  const { regularAt, extraAt } = schedule(rules, state, run);
  const { result, held, streak } = judge(rules, state, run);
  // Named one by one: this is made for every run, and a spread costs as much as the rest of it.
  return { containerId, result, held, streak, eligibleAt, regularAt, extraAt, lastRunAt: run.startedAt };
}

function judge(
  rules: ProbeRules,
  state: ProbeState,
  { round, outcome }: FinishedRun,
): Pick<ProbeState, "result" | "held" | "streak"> {
  if (outcome === "error" || (round === "extra" && outcome === "failure")) return state;
  const count = state.streak?.of === outcome ? state.streak.count + 1 : 1;
  const streak = { of: outcome, count };
  const threshold = outcome === "success" ? rules.successThreshold : rules.failureThreshold;
  if (count < threshold) return { result: state.result, held: state.held, streak };
  const held = rules.kind === "startup" || (rules.kind === "liveness" && outcome === "failure");
  return { result: outcome, held, streak: held ? undefined : streak };
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
  // Once a container takes ten periods, its own period is close enough.
  return { regularAt, extraAt: gapMs >= rules.periodMs ? undefined : Math.max(startedAt + gapMs, endedAt) };
}

/** 11.6: somebody makes the status of a container that has started and is not ready: ask it now. */
export function hurry(rules: ProbeRules, state: ProbeState, mono: number): ProbeState {
  const { eligibleAt, extraAt, lastRunAt } = state;
  if (rules.kind !== "readiness" || state.result === "success") return state;
  if (state.held || eligibleAt === undefined || eligibleAt > mono) return state;
  if (rules.upstreamTiming) return { ...state, regularAt: Math.min(state.regularAt, mono) };
  if (extraAt !== undefined) {
    return { ...state, extraAt: Math.min(extraAt, Math.max(mono, lastRunAt + rules.periodMs / EXTRA_FACTOR)) };
  }
  // Several successes are asked for, one a period: the first has come, and the next must not come sooner.
  if (state.streak?.of === "success") return state;
  return { ...state, regularAt: Math.min(state.regularAt, Math.max(mono, lastRunAt + rules.periodMs / EXTRA_FACTOR)) };
}
