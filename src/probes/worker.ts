import { AbortedError, isAborted, manyListeners } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import type { Probe } from "../model/generated/types.ts";
import type { ProbeKind, ProbeReport, ProbeResult, ProbeRunReport } from "../model/probe.ts";
import {
  adopt,
  afterRun,
  type ContainerObservation,
  nextRun,
  observe,
  type ProbeRules,
  type ProbeState,
  type Round,
  trigger,
} from "./decide.ts";
import type { HandlerDeps, ProbeHandler, ProbeTarget } from "./handlers/handler.ts";
import { type Ran, runProbe } from "./run-probe.ts";

/** Of the output of the last run so many characters are kept. */
const LONGEST_OUTPUT = 1000;
/** A run that starts later than this is late, and the next period is counted from its start. */
const MOST_LATE_MS = 200;

/** Dependencies shared by all workers. */
export interface WorkerDeps extends HandlerDeps {
  readonly clock: Clock;
  /** Clock for timers that may be a little late, so that many fire together. */
  readonly slots: Clock;
  /** False if the extra round must be skipped: expensive handlers run only a few of them at a time. */
  mayRunExtra(handler: ProbeHandler): boolean;
}

/** One probe of one container. */
export interface WorkerSpec {
  readonly probe: Probe;
  readonly handler: ProbeHandler;
  readonly rules: ProbeRules;
}

/** Receives the runs and results of a worker. */
export interface WorkerHooks {
  /** Called for a run that counts, or an extra round that succeeded. */
  ran(kind: ProbeKind, ran: Ran, tookMs: number): void;
  /** Called when the result changes. */
  changed(kind: ProbeKind, result: ProbeResult): void;
  onBegin(handler: ProbeHandler): void;
  onEnd(handler: ProbeHandler): void;
}

/**
 * Runs one probe of one container, for each of its instances in turn:
 *
 *     waiting ──(instance runs, delay over, gate open)──► due ──► running ──► due …
 *        ▲                                                           │
 *        └──────── instance terminated, or on hold ◄────────────────┘
 *
 * `decide.ts` makes the decisions; this class has the timer and executes the probe.
 */
export class ProbeWorker {
  private state: ProbeState | undefined;
  private target: ProbeTarget | undefined;
  private timer: Timer | undefined;
  /** Aborts the current run; replaced after each abort. */
  private controller = manyListeners();
  private isRunning = false;
  private isStopped = false;
  private last: ProbeRunReport | undefined;
  readonly tickBase: number;
  private readonly runDeps: HandlerDeps & { clock: Clock };

  constructor(
    private readonly spec: WorkerSpec,
    private readonly deps: WorkerDeps,
    private readonly hooks: WorkerHooks,
  ) {
    this.tickBase = deps.clock.now().mono;
    this.runDeps = { runtime: deps.runtime, net: deps.net, clock: deps.slots };
  }

  get kind(): ProbeKind {
    return this.spec.rules.kind;
  }

  get periodMs(): number {
    return this.spec.rules.periodMs;
  }

  /** Result for the latest instance. */
  get result(): ProbeResult {
    return this.state?.result ?? "unknown";
  }

  /** The probe as it is now, for people. */
  report(container: string): ProbeReport {
    const { kind, result, last, state } = this;
    const next = state === undefined || this.isStopped ? undefined : nextRun(state);
    const now = this.deps.clock.now();
    return {
      container,
      kind,
      result,
      ...(last && { last }),
      ...(state?.streak && { streak: state.streak }),
      ...(next && { nextAt: now.wall + next.at - now.mono }),
    };
  }

  /** Switches to a new instance; `carried`: the probe had succeeded before the agent was restarted. */
  adopt(containerId: string, carried: boolean): void {
    this.controller.abort(new AbortedError("another container"));
    this.state = adopt(this.spec.rules, containerId, carried);
    this.last = undefined;
  }

  /** Takes a new observation of the container, which may schedule the next run. Hooks are not called. */
  observe(target: ProbeTarget, seen: Omit<ContainerObservation, "tickBase">): void {
    if (this.state === undefined || this.isStopped) return;
    this.target = target;
    this.state = observe(this.spec.rules, this.state, { ...seen, tickBase: this.tickBase });
    this.arm();
  }

  /** Triggers a readiness run: a status is being generated for a container that has started and is not ready. */
  trigger(): void {
    if (this.state === undefined || this.isStopped || this.isRunning) return;
    this.state = trigger(this.spec.rules, this.state, this.deps.clock.now().mono);
    this.arm();
  }

  /** Stops the worker permanently. A terminating pod must not become unhealthy: `as` is its result from now on. */
  stop(as?: ProbeResult): void {
    this.isStopped = true;
    if (this.state !== undefined && as !== undefined) this.state = { ...this.state, result: as };
    this.timer?.cancel();
    this.controller.abort(new AbortedError("probe stopped"));
  }

  private arm(): void {
    if (this.isRunning) return;
    this.timer?.cancel();
    this.timer = undefined;
    const next = this.state === undefined || this.isStopped ? undefined : nextRun(this.state);
    if (next === undefined) return;
    const { clock, slots } = this.deps;
    const timers = next.round === "extra" ? clock : slots;
    this.timer = timers.after(next.at - clock.now().mono, () => void this.fire(next));
  }

  private async fire({ at, round }: { at: number; round: Round }): Promise<void> {
    const { state, target, spec, deps, hooks } = this;
    this.timer = undefined;
    if (state === undefined || target === undefined) return;
    const now = deps.clock.now().mono;
    // Counted from when it was due, otherwise the delays of all runs would add up.
    const startedAt = now - at < MOST_LATE_MS ? at : now;
    if (round === "extra" && !deps.mayRunExtra(spec.handler)) {
      this.state = afterRun(spec.rules, state, { round, outcome: "failure", startedAt, endedAt: now });
      return this.arm();
    }
    if (this.controller.signal.aborted) this.controller = manyListeners();
    const { controller } = this;
    this.isRunning = true;
    hooks.onBegin(spec.handler);
    let ran: Ran | undefined;
    try {
      ran = await runProbe(this.runDeps, { handler: spec.handler, probe: spec.probe, target }, controller);
    } catch (error) {
      if (!isAborted(error, controller.signal)) throw error;
    } finally {
      this.isRunning = false;
      hooks.onEnd(spec.handler);
    }
    const isCurrent = !this.isStopped && this.state?.containerId === target.containerId;
    if (ran !== undefined && isCurrent) this.take(ran, { round, startedAt });
    this.arm();
  }

  private take(ran: Ran, { round, startedAt }: { round: Round; startedAt: number }): void {
    const before = this.state;
    // The container terminated, or its startup probe completed, during this run.
    if (before === undefined || before.onHold || before.eligibleAt === undefined) return;
    const { mono: endedAt, wall } = this.deps.clock.now();
    this.last = { outcome: ran.result, at: wall, tookMs: endedAt - startedAt, message: cut(ran.output) };
    const outcome = ran.result === "warning" ? "success" : ran.result;
    this.state = afterRun(this.spec.rules, before, { round, outcome, startedAt, endedAt });
    if (round === "regular" || outcome === "success") this.hooks.ran(this.kind, ran, endedAt - startedAt);
    if (this.state.result !== before.result) this.hooks.changed(this.kind, this.state.result);
  }
}

/** A part of a long text, as a text of its own: a slice would keep the whole in memory. */
function cut(text: string): string {
  return text.length <= LONGEST_OUTPUT ? text : Buffer.from(text.slice(0, LONGEST_OUTPUT)).toString();
}
