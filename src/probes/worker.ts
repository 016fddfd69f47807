import { AbortedError, isAborted, manyListeners } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import type { Probe } from "../model/generated/types.ts";
import type { ProbeKind, ProbeResult } from "../model/probe.ts";
import {
  adopt,
  afterRun,
  hurry,
  look,
  nextRun,
  type ProbeRules,
  type ProbeState,
  type Round,
  type Sighting,
} from "./decide.ts";
import type { HandlerDeps, ProbeHandler, ProbeTarget } from "./handlers/handler.ts";
import { type Ran, runProbe } from "./run-probe.ts";

/** A run that begins later than this is late, and the period is counted from it. */
const MOST_LATE_MS = 200;

/** What workers share. */
export interface WorkerDeps extends HandlerDeps {
  readonly clock: Clock;
  /** For what may be a little late, so that many can be woken together. */
  readonly slots: Clock;
  /** Extra rounds may be left out; those that cost much are, while others of their kind go on. */
  mayRunExtra(handler: ProbeHandler): boolean;
}

/** One probe of one container. */
export interface WorkerSpec {
  readonly probe: Probe;
  readonly handler: ProbeHandler;
  readonly rules: ProbeRules;
}

/** Whom a worker tells. */
export interface WorkerHooks {
  /** A run that counts, or an extra round that succeeded. */
  ran(kind: ProbeKind, ran: Ran, tookMs: number): void;
  /** The result is another one. */
  changed(kind: ProbeKind, result: ProbeResult): void;
  onBegin(handler: ProbeHandler): void;
  onEnd(handler: ProbeHandler): void;
}

/**
 * Runs one probe of one container, whatever instance of it there is:
 *
 *     waiting ──(instance runs, delay over, gate open)──► due ──► running ──► due …
 *        ▲                                                           │
 *        └──────── instance ended, or decided for good ◄─────────────┘
 *
 * All decisions are those of `decide.ts`; this has the timer and the call.
 */
export class ProbeWorker {
  private state: ProbeState | undefined;
  private target: ProbeTarget | undefined;
  private timer: Timer | undefined;
  /** Ends the run under way; another one after each that was ended. */
  private controller = manyListeners();
  private isRunning = false;
  private isStopped = false;
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

  /** About the instance that was followed last. */
  get result(): ProbeResult {
    return this.state?.result ?? "unknown";
  }

  /** Takes up another instance; `carried` as an earlier run of the agent left it. */
  adopt(containerId: string, carried: boolean): void {
    this.controller.abort(new AbortedError("another container"));
    this.state = adopt(this.spec.rules, containerId, carried);
  }

  /** A look at the container; may set the next run. Tells nobody: who looks reads the result afterwards. */
  look(target: ProbeTarget, seen: Omit<Sighting, "tickBase">): void {
    if (this.state === undefined || this.isStopped) return;
    this.target = target;
    this.state = look(this.spec.rules, this.state, { ...seen, tickBase: this.tickBase });
    this.arm();
  }

  /** 11.6: the container has started and is not ready, and its status is being made. */
  hurry(): void {
    if (this.state === undefined || this.isStopped || this.isRunning) return;
    this.state = hurry(this.spec.rules, this.state, this.deps.clock.now().mono);
    this.arm();
  }

  /** For good. A pod that ends must not be called unhealthy: `as` is what counts from now on. */
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
    // Counted from when it was due, else every run would be a little later than the one before it.
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
    // The container ended, or its startup probe was decided, while this was under way.
    if (before === undefined || before.held || before.eligibleAt === undefined) return;
    const endedAt = this.deps.clock.now().mono;
    const outcome = ran.result === "warning" ? "success" : ran.result;
    this.state = afterRun(this.spec.rules, before, { round, outcome, startedAt, endedAt });
    if (round === "regular" || outcome === "success") this.hooks.ran(this.kind, ran, endedAt - startedAt);
    if (this.state.result !== before.result) this.hooks.changed(this.kind, this.state.result);
  }
}
