import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Live, LiveValue } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import { Wakes } from "../lib/wakes.ts";
import type { Pod } from "../model/generated/types.ts";
import type { NodeExplanation } from "../model/node-pressure.ts";
import { podIdentity } from "../model/pod-facts.ts";
import { type Assessment, type AssessmentFacts, assess, LONGEST_CHECK_MS, NO_PRESSURE, nextCheckMs } from "./assess.ts";
import type { Evictions } from "./evictions.ts";
import { reportRanking, reportSignals } from "./explain.ts";
import { evictionText } from "./message.ts";
import { type Consumption, rankPods } from "./rank.ts";
import { type NodeReclaim, reclaimFor } from "./reclaim.ts";
import {
  CONDITIONS,
  type Layout,
  layoutOf,
  type NodeSignals,
  observationsOf,
  type PressureCondition,
  SIGNALS,
  type Signal,
} from "./signals.ts";
import { ThresholdWarnings, unmeasured } from "./threshold-warnings.ts";
import { type Threshold, thresholdsMet, withContainerThresholds } from "./thresholds.ts";
import { Trends } from "./trends.ts";

export interface EvictionDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Reads the signals now, those of filesystems if they are older than that. Never rejects but for an abort. */
  signals(options: Abortable & { readonly spaceAgeMs: number }): Promise<NodeSignals>;
  /** Measures what pods take: memory and tasks, and what they keep on disk, for `diskMs` at most; 0 means not at all. */
  consumption(pods: readonly Pod[], options: Abortable & { readonly diskMs: number }): Promise<Consumption>;
  readonly evictions: Evictions;
  readonly reclaim: NodeReclaim;
  /** Evicts pods that exceed their own limits on local storage; true if there were any. */
  evictOverLimits(options: Abortable): Promise<boolean>;
  /** Records an event about the node. */
  event(type: "Warning", reason: string, message: string): void;
  /** Called with the age of the measurement that an eviction is based on. */
  acted(signal: Signal, ageSeconds: number): void;
}

export interface EvictionOptions {
  readonly thresholds: readonly Threshold[];
  readonly transitionMs: number;
  /** Upper limit of the grace period of soft evictions in seconds; negative means the pod's own. */
  readonly maxPodGraceSeconds: number;
}

/** The signals as they were assessed. */
interface Round {
  readonly facts: AssessmentFacts;
  readonly assessment: Assessment;
  readonly layout: Layout;
}

/** Grace period in seconds of a pod that is evicted by a hard threshold, as in Kubernetes. */
export const HARD_GRACE_SECONDS = 1;
/** How long the disk usage of pods is measured for a ranking, and for an explanation, in milliseconds. */
const RANK_DISK_MS = 10_000;
const EXPLAIN_DISK_MS = 1000;
/** The next attempt when no pod is known yet, for memory and process ids, whose attempts cost nothing. */
const NO_PODS_MS = 1000;
/** The signals that stand for the resources in an explanation. */
const EXPLAINED: readonly Signal[] = ["memory.available", "nodefs.available", "nodefs.inodesFree", "pid.available"];

/**
 * Keeps the node out of shortage: compares its signals with the thresholds, and for each condition that needs it frees
 * what the node itself keeps, then evicts one pod and waits for its end. Memory goes on being watched while disks are
 * relieved. Signals that are far from their thresholds are read every 10 s, near ones several times a second.
 */
export class EvictionLoop {
  private state = NO_PRESSURE;
  private readonly trends = new Trends();
  private readonly warnings: ThresholdWarnings;
  private readonly wakes: Wakes;
  private readonly relieving = new Map<PressureCondition, Promise<void>>();
  private readonly relievedAt = new Map<PressureCondition, number>();
  /** Who is being evicted by a soft threshold, with its long grace period. */
  private readonly unhurried = new Map<PressureCondition, { readonly uid: string; readonly message: string }>();
  /** Until when nothing more is tried for a condition, because nothing could be evicted. */
  private readonly restUntil = new Map<PressureCondition, number>();
  /** How old what is known of filesystems may be: they are asked more often the nearer they are to a threshold. */
  private spaceAgeMs = 0;
  private failure: { readonly error: unknown } | undefined;

  constructor(
    private readonly deps: EvictionDeps,
    private readonly options: Live<EvictionOptions>,
    private readonly pressure: LiveValue<readonly PressureCondition[]>,
  ) {
    this.wakes = new Wakes(deps.clock);
    this.warnings = new ThresholdWarnings(deps.log);
  }

  async run(signal: AbortSignal): Promise<void> {
    this.options.onChange(() => this.wakes.wake(), { signal });
    while (!signal.aborted) {
      this.wakes.clear();
      const waitMs = await this.check(signal);
      if (this.failure !== undefined) throw this.failure.error;
      await this.wakes.sleep(waitMs, signal);
    }
  }

  /**
   * Takes over the conditions that the API server has from an earlier agent: they end when their transition period is
   * over, not with a restart. True if there are any.
   */
  inherit(conditions: readonly string[]): boolean {
    const known = CONDITIONS.filter((condition) => conditions.includes(condition));
    if (known.length === 0) return false;
    const { mono } = this.deps.clock.now();
    const inherited = known.map((condition) => [condition, mono] as const);
    this.state = { ...this.state, observedAt: new Map([...inherited, ...this.state.observedAt]) };
    const { current } = this.pressure;
    this.publish(CONDITIONS.filter((condition) => known.includes(condition) || current.includes(condition)));
    this.wakes.wake();
    return true;
  }

  /** What is measured, against which thresholds, and who would be evicted, without doing it. */
  async explain({ signal }: Abortable): Promise<Omit<NodeExplanation, "node">> {
    const { deps, state, trends } = this;
    const signals = await deps.signals({ signal, spaceAgeMs: 0 });
    const layout = layoutOf(signals);
    const thresholds = withContainerThresholds(this.options.current.thresholds, layout);
    const pods = deps.evictions.candidates();
    const consumption = await deps.consumption(pods, { signal, diskMs: EXPLAIN_DISK_MS });
    const observations = observationsOf(signals);
    return {
      conditions: this.pressure.current,
      signals: reportSignals(observations, thresholds, { state, trends, now: signals.at.mono }),
      unmeasured: unmeasured(thresholds, observations),
      rankings: EXPLAINED.map((of) => reportRanking(of, rankPods(of, pods, { consumption, layout }))),
      evictions: deps.evictions.recent,
    };
  }

  /** One round; returns how long nothing can happen. */
  private async check(signal: AbortSignal): Promise<number> {
    const round = await this.assessNow(signal);
    const { facts, assessment, layout } = round;
    this.publish(assessment.conditions);
    const { mono } = this.deps.clock.now();
    for (const threshold of assessment.starved) {
      const { condition } = SIGNALS[threshold.signal];
      if (threshold.graceMs === 0) this.hurry(condition);
      if (this.relieving.has(condition) || (this.restUntil.get(condition) ?? 0) > mono) continue;
      this.relieve(condition, { facts, assessment, layout }, signal);
    }
    this.spaceAgeMs = nextCheckMs(assessment, facts, "DiskPressure");
    return nextCheckMs(assessment, facts);
  }

  /** A hard threshold does not wait for the grace period of a pod that a soft one evicts. */
  private hurry(condition: PressureCondition): void {
    const victim = this.unhurried.get(condition);
    if (victim === undefined) return;
    this.unhurried.delete(condition);
    this.deps.log.info("Shortening grace period of evicted pod for hard eviction threshold", { podUID: victim.uid });
    this.deps.evictions.hurry(victim, HARD_GRACE_SECONDS);
  }

  private async assessNow(signal: AbortSignal, spaceAgeMs = this.spaceAgeMs): Promise<Round> {
    const signals = await this.deps.signals({ signal, spaceAgeMs });
    const layout = layoutOf(signals);
    const { thresholds, transitionMs } = this.options.current;
    const facts: AssessmentFacts = {
      thresholds: withContainerThresholds(thresholds, layout),
      observations: observationsOf(signals),
      transitionMs,
      now: this.deps.clock.now().mono,
      relievedAt: this.relievedAt,
    };
    this.trends.record(facts.observations);
    this.warnings.check(facts.thresholds, facts.observations, facts.now);
    const assessment = assess(this.state, facts);
    this.state = assessment.state;
    return { facts, assessment, layout };
  }

  private publish(conditions: readonly PressureCondition[]): void {
    if (conditions.join() === this.pressure.current.join()) return;
    this.deps.log.info("Updated node pressure conditions", { conditions: conditions.join() });
    this.pressure.set(conditions);
  }

  /** Relieves one condition in the background, one attempt at a time. */
  private relieve(condition: PressureCondition, round: Round, signal: AbortSignal): void {
    const { clock } = this.deps;
    const starved = round.assessment.starved.filter((one) => SIGNALS[one.signal].condition === condition);
    const attempt = this.attempt(starved, round, signal).then(
      (isRelieved) => {
        if (isRelieved) return;
        const isEarly = condition !== "DiskPressure" && this.deps.evictions.candidates().length === 0;
        this.restUntil.set(condition, clock.now().mono + (isEarly ? NO_PODS_MS : LONGEST_CHECK_MS));
      },
      (error: unknown) => {
        if (!signal.aborted) this.failure = { error };
      },
    );
    const done = attempt.finally(() => {
      this.relievedAt.set(condition, clock.now().mono);
      this.relieving.delete(condition);
      this.wakes.wake();
    });
    this.relieving.set(condition, done);
  }

  /** True if something was freed, or evicted and its end waited for. */
  private async attempt(starved: readonly Threshold[], round: Round, signal: AbortSignal): Promise<boolean> {
    const { log, event } = this.deps;
    const [threshold] = starved;
    if (threshold === undefined) return false;
    const { resource, condition } = SIGNALS[threshold.signal];
    log.info("Attempting to reclaim", { resource, signal: threshold.signal });
    event("Warning", "EvictionThresholdMet", `Attempting to reclaim ${resource}`);
    if (condition === "DiskPressure" && (await this.deps.evictOverLimits({ signal }))) return true;
    if (await this.reclaimOwn(threshold, round, signal)) return true;
    return this.evictFirst(threshold, signal);
  }

  /** Frees what the node itself keeps; true if no threshold is met afterwards, with its minimum reclaim. */
  private async reclaimOwn({ signal: of }: Threshold, { layout }: Round, signal: AbortSignal): Promise<boolean> {
    const { log, reclaim } = this.deps;
    const steps = reclaimFor(of, layout);
    for (const step of steps) {
      try {
        await reclaim[step]({ signal });
      } catch (error) {
        signal.throwIfAborted();
        log.warn("Failed to reclaim node resources", { step, error: messageOf(error) });
      }
    }
    if (steps.length === 0) return false;
    const { facts } = await this.assessNow(signal, 0);
    const { condition } = SIGNALS[of];
    const left = thresholdsMet(facts.thresholds, facts.observations, { reclaim: true });
    if (left.some((one) => SIGNALS[one.signal].condition === condition)) return false;
    log.info("Reclaimed resources without evicting pods", { resource: SIGNALS[of].resource });
    return true;
  }

  /**
   * Evicts the first of the ranking, unless enough was freed while the pods were measured. What the node is short of by
   * then decides: after a removal of images it may be inodes, no longer bytes.
   */
  private async evictFirst({ signal: of }: Threshold, signal: AbortSignal): Promise<boolean> {
    const { log, evictions } = this.deps;
    const { condition } = SIGNALS[of];
    if (await evictions.endInherited({ signal })) return true;
    const pods = evictions.candidates();
    const isDisk = condition === "DiskPressure";
    const consumption = await this.deps.consumption(pods, { signal, diskMs: isDisk ? RANK_DISK_MS : 0 });
    const { assessment, facts, layout } = await this.assessNow(signal, 0);
    const starved = assessment.starved.filter((one) => SIGNALS[one.signal].condition === condition);
    const [threshold] = starved;
    if (threshold === undefined) return true;
    const left = new Set(evictions.candidates().map((pod) => podIdentity(pod).uid));
    const ranked = rankPods(threshold.signal, pods, { consumption, layout });
    const victim = ranked.find(({ pod, isCritical }) => !isCritical && left.has(podIdentity(pod).uid))?.pod;
    if (victim === undefined) {
      log.warn("Unable to evict any pods from the node", { signal: threshold.signal, pods: pods.length });
      return false;
    }
    const { observations } = facts;
    for (const one of starved) {
      const age = this.deps.clock.now().mono - (observations.get(one.signal)?.at.mono ?? Number.NaN);
      if (Number.isFinite(age)) this.deps.acted(one.signal, age / 1000);
    }
    const text = evictionText(victim, consumption.get(podIdentity(victim).uid), { starved, observations });
    const graceSeconds = threshold.graceMs === 0 ? HARD_GRACE_SECONDS : this.softGrace(victim);
    const why = { ...text, graceSeconds, signal: threshold.signal, disruption: text.message, isForDisk: isDisk };
    const { uid } = podIdentity(victim);
    if (threshold.graceMs > 0) this.unhurried.set(condition, { uid, message: text.message });
    await evictions.evict(victim, why, { signal }).finally(() => this.unhurried.delete(condition));
    return true;
  }

  private softGrace({ spec }: Pod): number {
    const { maxPodGraceSeconds: most } = this.options.current;
    const own = spec.terminationGracePeriodSeconds ?? Number.POSITIVE_INFINITY;
    return most < 0 ? own : Math.min(most, own);
  }
}
