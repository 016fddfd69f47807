import { AbortedError, AbortScope, isAborted } from "../../lib/abort.ts";
import type { Clock, Instant } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { Wakes } from "../../lib/wakes.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import type { ObservedContainer, ObservedPod } from "../../model/observed.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import type { ProbeKind } from "../../model/probe.ts";
import type { PodIdentity } from "../../model/step.ts";
import { podDir } from "../config/paths.ts";
import type { ExecuteDeps, PodRun } from "../execute/context.ts";
import { stopPod } from "../execute/kill.ts";
import { removePod } from "../execute/remove.ts";
import type { PodJournal } from "../journal.ts";
import type { CrashLimits } from "../plan/crash-backoff.ts";
import { type Acting, mustInterrupt } from "../plan/interrupt.ts";
import { planPod } from "../plan/plan.ts";
import type { PodAction, PodPlan } from "../plan/pod-plan.ts";
import { DEFAULT_DEAD_LIMITS, type DeadLimits } from "../plan/prune.ts";
import { refusalOf } from "../plan/refusal.ts";
import { restartTriggers } from "../plan/restart-rules.ts";
import { derivePodStatus, isTerminalPhase, type StatusFailure } from "../status/derive.ts";
import type { WaitingReason } from "../status/derive-container.ts";
import { withProbeFlags } from "../status/derive-flags.ts";
import { PodActions } from "./actions.ts";
import { needsSync, type PodProbes } from "./probes.ts";
import { PodResize, RESIZE_RETRY_MS, type ResizeVerdict } from "./resize.ts";
import { StartMemory } from "./start-memory.ts";
import type { StartSlot } from "./start-slot.ts";

/** No record of a pod's resources is longer. */
const MOST_RECORD_BYTES = 1024 * 1024;

/** After an error that says nothing about when to try again (10 s in Kubernetes, which waits as long for a passing one). */
const ERROR_RETRY_MS = { first: 1000, max: 30_000 };

/**
 * One pod, one thing at a time:
 *
 *     syncing ──(told to stop, or ended by itself)──► stopping ──► stopped ──(no longer wanted)──► gone
 *
 * A wake-up only says "look again". The worker reads the runtime after its last action, plans, acts, and reads again;
 * it publishes a status only after reading, never between a kill and the start that belongs to it.
 */
export type WorkerPhase = "syncing" | "stopping" | "stopped" | "gone";

export interface WorkerDeps {
  readonly execute: ExecuteDeps;
  readonly observer: {
    read(pod: PodIdentity, options: { signal: AbortSignal }): Promise<ObservedPod>;
  };
  readonly probes: PodProbes;
  readonly journal: PodJournal;
  readonly slot: StartSlot;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether the node has room for a pod that wants other requests. */
  resizeVerdict(pod: Pod): ResizeVerdict;
  /** Takes the newly derived status. */
  publish(uid: string, status: PodStatus): void;
  /** Aborts a while after the agent was told to stop: until then creates and starts are finished. */
  readonly late: AbortSignal;
  /** Called when the worker enters another phase. */
  onPhase(worker: PodWorker): void;
  /** Told how long each look at a pod that should run took, with what followed from it. */
  measured?(operation: SyncOperation, tookMs: number): void;
}

/** Why the worker looked: the pod is new to it, its spec is, or something else woke it. */
export type SyncOperation = "create" | "update" | "sync";

export interface WorkerOptions {
  readonly crashLimits: CrashLimits;
  /** How many ended containers are kept; one each unless it says otherwise. */
  deadLimits?(): DeadLimits;
  /** The pod is only known from the runtime: stop it, take it away. */
  readonly orphan?: boolean;
  /** What was said of the pod before this agent began: a final phase stays final, a start time stays. */
  readonly known?: PodStatus;
}

interface Stop {
  readonly graceSeconds: number;
  readonly failure?: StatusFailure;
}

/** Drives one pod to what its source wants. Built and woken by the `WorkerPool`. */
export class PodWorker {
  readonly identity: PodIdentity;
  private current: Pod;
  private state: WorkerPhase = "syncing";
  private stop: Stop | undefined;
  private isWanted = true;
  private keepLogs = false;
  private status: PodStatus | undefined;
  private readonly wakes: Wakes;
  private scope: AbortScope | undefined;
  private acting: Acting | undefined;
  private failures = 0;
  /** Monotonic time before which a failed action is not tried again, however often the worker is woken. */
  private blockedUntil = 0;
  /** Why nothing of the pod is started, whatever else is true. */
  private refusal: WaitingReason | undefined;
  private isAdopted = false;
  private operation: SyncOperation = "create";
  private readonly resize: PodResize;
  /** Containers do not have yet what they were given. */
  private isResizing = false;
  /** The pod whose limits its cgroup has. */
  private limited: Pod | undefined;
  private readonly preStopped = new Set<string>();
  private readonly memory: StartMemory;
  private readonly actions: PodActions;

  constructor(
    pod: Pod,
    private readonly deps: WorkerDeps,
    private readonly options: WorkerOptions,
  ) {
    this.current = pod;
    this.identity = podIdentity(pod);
    this.status = options.known;
    this.wakes = new Wakes(deps.clock);
    const { identity } = this;
    const { journal, clock, execute } = deps;
    this.memory = new StartMemory({ identity, journal, clock, crashLimits: options.crashLimits });
    this.memory.restartingAll = isRestartingAll(options.known);
    const { files, node } = execute;
    const record = `${podDir(node.paths, this.identity.uid)}/resize.json`;
    this.resize = new PodResize({
      log: deps.log,
      load: () => files.readTail(record, MOST_RECORD_BYTES),
      save: (text) => files.writeFile(record, text, 0o640),
      verdict: (asked) => deps.resizeVerdict(asked),
      event: (type, reason, message) => journal.event(type, reason, message),
    });
    const { memory, resize } = this;
    this.actions = new PodActions({ execute, identity, memory, resize });
    if (options.orphan === true) {
      this.isWanted = false;
      this.stop = { graceSeconds: 1 };
    } else this.refuse();
  }

  get phase(): WorkerPhase {
    return this.state;
  }

  get pod(): Pod {
    return this.current;
  }

  /** The pod with what it was given of its requests and limits, which is what it counts for. */
  get allocated(): Pod {
    return this.resize.view(this.current);
  }

  /** It asks for more than there is room for, and would like to hear of any. */
  get awaitsRoom(): boolean {
    return this.resize.pending !== undefined;
  }

  get lastStatus(): PodStatus | undefined {
    return this.status;
  }

  /** Told to stop, and not only done by itself. */
  get isStopping(): boolean {
    return !this.isWanted || this.current.metadata.deletionTimestamp !== undefined;
  }

  /** The source has another version under the same UID. */
  update(pod: Pod): void {
    this.current = pod;
    if (this.operation === "sync") this.operation = "update";
    this.refuse();
    if (pod.metadata.deletionTimestamp === undefined) this.wake({ retry: true });
    else this.terminate();
  }

  /**
   * The API server was asked to delete the pod: stop it with its grace, but keep what it was until the source no longer
   * has it. The grace can only shrink.
   */
  terminate(graceSeconds?: number): void {
    const own =
      this.current.metadata.deletionGracePeriodSeconds ?? this.current.spec.terminationGracePeriodSeconds ?? 30;
    const asked = Math.max(1, graceSeconds ?? own);
    this.stop = { ...this.stop, graceSeconds: Math.min(asked, this.stop?.graceSeconds ?? asked) };
    this.wake({ retry: true });
  }

  /**
   * Something may have changed: look again. Cheap, and harmless when nothing has. `retry` also ends the wait after an
   * error, for wake-ups that make success more likely (another spec, the runtime is back).
   */
  wake(options: { retry?: boolean } = {}): void {
    if (options.retry === true) this.blockedUntil = 0;
    if (this.acting !== undefined && mustInterrupt({ pod: this.current, stop: this.stop }, this.acting)) {
      this.scope?.abort(new AbortedError("planned anew"));
    }
    this.wakes.wake();
  }

  /** The source no longer has the pod: stop it with its grace and take everything away. The grace can only shrink. */
  remove(options: { graceSeconds?: number; keepLogs?: boolean } = {}): void {
    this.isWanted = false;
    if (options.keepLogs !== undefined) this.keepLogs = options.keepLogs;
    this.terminate(options.graceSeconds);
  }

  /** A probe decided anew. Ready and started go into the last status at once, also while the worker is busy. */
  probed(kind: ProbeKind): void {
    const before = this.status;
    if (before !== undefined) {
      const probes = this.deps.probes.results(this.identity.uid);
      this.status = withProbeFlags(before, { pod: this.current, probes, now: this.deps.clock.now().wall });
      if (this.status !== before) this.deps.publish(this.identity.uid, this.status);
    }
    if (needsSync(kind)) this.wake();
  }

  /** The node needs its room: stop it with its own grace, as Failed. Whoever wants it may see how it ended. */
  evict(failure: StatusFailure): void {
    const own = this.current.spec.terminationGracePeriodSeconds ?? 30;
    this.stop = { graceSeconds: Math.min(Math.max(1, own), this.stop?.graceSeconds ?? own), failure };
    this.wake({ retry: true });
  }

  /** Told to stop, for whatever reason, whether it has begun to or not. */
  get willStop(): boolean {
    return this.stop !== undefined;
  }

  /** Runs until the pod is gone or the agent stops. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (this.state !== "gone" && !signal.aborted) {
      this.wakes.clear();
      const scope = new AbortScope([signal]);
      this.scope = scope;
      let sleepMs: number | undefined;
      const began = this.deps.clock.now().mono;
      const operation = this.state === "syncing" ? this.operation : undefined;
      this.operation = "sync";
      try {
        sleepMs = await this.step(scope.signal);
        if (this.blockedUntil === 0) this.failures = 0;
      } catch (error) {
        sleepMs = isAborted(error, scope.signal) ? 0 : this.failed(error);
      } finally {
        this.acting = undefined;
        this.deps.slot.release();
        scope.dispose();
        if (operation !== undefined) this.deps.measured?.(operation, this.deps.clock.now().mono - began);
      }
      if (sleepMs !== 0) await this.wakes.sleep(sleepMs, signal);
    }
  }

  private get mustEnd(): boolean {
    return this.state === "syncing" && this.stop !== undefined;
  }

  /** One look at the runtime and what follows from it. Answers how long to sleep: 0 not at all, undefined until woken. */
  private async step(interrupt: AbortSignal): Promise<number | undefined> {
    if (this.state === "stopped" && this.isWanted) return undefined;
    // Asked before and after: nothing is read in vain, and what was told meanwhile counts.
    if (this.mustEnd) return this.enter("stopping");
    const observed = await this.deps.observer.read(this.identity, { signal: interrupt });
    if (this.mustEnd) return this.enter("stopping");
    const run = this.newRun(observed, interrupt);
    switch (this.state) {
      case "syncing":
        return this.sync(run, observed);
      case "stopping":
        return this.stopAll(run, observed);
      case "stopped":
        return this.removeAll(observed, interrupt);
      case "gone":
        return undefined;
    }
  }

  private async removeAll(observed: ObservedPod, signal: AbortSignal): Promise<number> {
    const step = this.deps.journal.begin("remove");
    try {
      await removePod(this.deps.execute, { pod: this.identity, observed, keepLogs: this.keepLogs }, { signal });
    } catch (error) {
      step.fail(error);
      throw error;
    }
    step.done("everything of the pod is removed");
    return this.enter("gone");
  }

  private newRun(observed: ObservedPod, interrupt: AbortSignal): PodRun {
    const newest = observed.sandboxes.find((sandbox) => sandbox.state === "ready");
    const sandbox = newest && { id: newest.id, attempt: newest.attempt, ips: newest.ips };
    const { journal, slot } = this.deps;
    const podIp = newest?.ips[0] ?? this.status?.podIP ?? "";
    const { preStopped } = this;
    const ids = new Map(observed.containers.map(({ name, id }) => [name, id] as const).toReversed());
    return { pod: this.current, journal, slot, interrupt, finish: this.deps.late, sandbox, podIp, ids, preStopped };
  }

  private enter(phase: WorkerPhase): number {
    this.state = phase;
    if (phase === "stopping") this.deps.probes.terminating(this.identity.uid);
    if (phase === "stopped") this.deps.probes.forget(this.identity.uid);
    this.deps.onPhase(this);
    return 0;
  }

  private async sync(given: PodRun, observed: ObservedPod): Promise<number | undefined> {
    this.adopt(observed);
    await this.resize.adopt(observed);
    const run: PodRun = { ...given, pod: this.resize.settle(given.pod) };
    const now = this.deps.clock.now();
    this.deps.probes.follow(run.pod, observed);
    const probes = this.deps.probes.results(this.identity.uid);
    const { refusal } = this;
    const actualOf = (container: ObservedContainer) => this.resize.actualOf(container);
    const dead = this.options.deadLimits?.() ?? DEFAULT_DEAD_LIMITS;
    const { memory } = this;
    const { isMisplaced } = memory;
    const { actualPod } = this.resize;
    const facts = { observed, probes, refusal, actualOf, actualPod, memory, isMisplaced, dead };
    const plan = planPod(run.pod, facts, now);
    this.isResizing = this.resize.follow(run.pod, observed);
    await this.ensureCgroup(run, observed);
    memory.noteWaits(plan);
    if (run.pod.spec.containers.every(({ name }) => run.ids.has(name)))
      memory.restartingAll = isAsked(run.pod, observed);
    if (memory.replacing.size === 0) this.publish(observed, {});
    const deadlineMs = this.untilDeadline(now);
    if (deadlineMs !== undefined && deadlineMs <= 0) return this.pastDeadline();
    if (isTerminalPhase(this.status?.phase) || plan.kind === "finish") {
      this.stop = { graceSeconds: run.pod.spec.terminationGracePeriodSeconds ?? 30 };
      return this.enter("stopping");
    }
    const blockedMs = this.blockedUntil - now.mono;
    if (blockedMs > 0) return Math.min(blockedMs, deadlineMs ?? blockedMs);
    this.blockedUntil = 0;
    if (plan.actions.length === 0) {
      return memory.said() ? 0 : this.settle(plan, deadlineMs);
    }
    // Also while it waits for a volume, an image or a hook, a pod is stopped when its time is over.
    const deadline = deadlineMs === undefined ? undefined : this.deps.clock.after(deadlineMs, () => this.expire());
    try {
      const begin = (action: PodAction): void => {
        this.acting = { action, pod: run.pod };
      };
      await this.actions.perform(run, { observed, actions: plan.actions, begin });
    } finally {
      deadline?.cancel();
    }
    return 0;
  }

  /** Looks whether the pod asks for what cannot be done; said once, shown as long as it does. */
  private refuse(): void {
    const before = this.refusal;
    this.refusal = refusalOf(this.current, this.deps.execute.node.security?.());
    this.memory.refuse(this.current, this.refusal, before);
    if (this.refusal === undefined) return;
    const { message } = this.refusal;
    if (message !== before?.message) this.deps.journal.event("Warning", "Failed", `Error: ${message}`);
  }

  /** A pod that runs already, from an earlier life of the agent or in another form, has its limits set once. */
  private async ensureCgroup(run: PodRun, observed: ObservedPod): Promise<void> {
    if ((this.limited === run.pod && !this.isResizing) || observed.sandboxes[0]?.state !== "ready") return;
    // Made too early it would hide from the next agent that the containers are not in it.
    if (this.memory.isMisplaced) return;
    // Lower limits of the whole pod come after those of its containers.
    this.limited = this.isResizing ? undefined : run.pod;
    await this.deps.execute.cgroups.ensure(run.pod, { growOnly: this.isResizing }).catch((error: unknown) => {
      this.deps.log.warn("the limits of a running pod could not be set", {
        pod: this.identity.name,
        error: messageOf(error),
      });
    });
  }

  /** Nothing to do now: say when there will be. */
  private settle(plan: Extract<PodPlan, { kind: "converge" }>, deadlineMs: number | undefined): number | undefined {
    const wall = this.deps.clock.now().wall;
    const first = [...plan.waits].sort((a, b) => a.afterMs - b.afterMs)[0];
    this.deps.journal.setNext(first && { at: wall + first.afterMs, why: `${first.container}: ${first.reason}` });
    const resizeMs = this.resize.pending === undefined ? undefined : RESIZE_RETRY_MS;
    const sleeps = [first?.afterMs, deadlineMs, resizeMs, plan.pruneAfterMs].filter((ms) => ms !== undefined);
    return sleeps.length === 0 ? undefined : Math.max(1, Math.min(...sleeps));
  }

  private adopt(observed: ObservedPod): void {
    if (this.isAdopted) return;
    this.isAdopted = true;
    this.memory.isMisplaced =
      observed.containers.some(({ state }) => state === "running") && !this.deps.execute.cgroups.exists(this.current);
    this.memory.adopt(observed);
  }

  private async stopAll(run: PodRun, observed: ObservedPod): Promise<number> {
    const blockedMs = this.blockedUntil - this.deps.clock.now().mono;
    if (blockedMs > 0) return blockedMs;
    const after = await this.endAll(run, observed);
    this.acting = undefined;
    this.enter("stopped");
    if (!this.isWanted) return this.removeAll(after, run.interrupt);
    run.journal.note("finished", this.status?.phase ?? "");
    return 0;
  }

  /** Stops everything and sees that it has stopped. Answers what is left. */
  private async endAll(run: PodRun, observed: ObservedPod): Promise<ObservedPod> {
    const graceSeconds = this.stop?.graceSeconds ?? 1;
    this.acting = { action: { do: "stopPod", why: "the pod is stopped" }, pod: run.pod, graceSeconds };
    if (this.options.orphan !== true) this.publish(observed, { terminating: true });
    const step = run.journal.begin("terminate", { detail: `grace ${graceSeconds}s` });
    try {
      await stopPod(this.deps.execute, run, { observed, graceSeconds });
      const after = await this.deps.observer.read(this.identity, { signal: run.interrupt });
      const alive = after.containers.filter((container) => container.state === "running");
      if (alive.length > 0)
        throw new Error(`still running after the stop: ${alive.map(({ name }) => name).join(", ")}`);
      if (this.options.orphan !== true) this.publish(after, { terminating: true, finished: true });
      // Whoever still wants to see the pod is told of its end when these are gone; otherwise they go with the rest.
      if (this.isWanted) {
        await this.deps.execute.volumes.teardown(this.identity.uid, { signal: run.interrupt });
        await this.deps.execute.cgroups.remove(this.identity.uid);
      }
      step.done(this.status?.phase ?? "");
      return after;
    } catch (error) {
      if (run.interrupt.aborted) step.abort("with a shorter grace");
      else {
        step.fail(error);
        run.journal.event("Warning", "FailedKillPod", `error killing pod: ${messageOf(error)}`);
      }
      throw error;
    }
  }

  /** Milliseconds until `activeDeadlineSeconds` is over. */
  private untilDeadline(now: Instant): number | undefined {
    const seconds = this.current.spec.activeDeadlineSeconds;
    const started = this.status?.startTime;
    if (seconds === undefined || started === undefined) return undefined;
    return Date.parse(started) + seconds * 1000 - now.wall;
  }

  private pastDeadline(): number {
    this.expire();
    return this.enter("stopping");
  }

  private expire(): void {
    const message = "Pod was active on the node longer than the specified deadline";
    this.stop = {
      graceSeconds: this.current.spec.terminationGracePeriodSeconds ?? 30,
      failure: { reason: "DeadlineExceeded", message },
    };
    this.deps.journal.event("Normal", "DeadlineExceeded", message);
    this.wake({ retry: true });
  }

  private publish(observed: ObservedPod, flags: { terminating?: boolean; finished?: boolean }): void {
    const { node } = this.deps.execute;
    const failure = this.stop?.failure;
    this.status = derivePodStatus({
      ...{ pod: this.allocated, observed, previous: this.status, waiting: this.memory.waiting },
      probes: this.deps.probes.results(this.identity.uid),
      ...{ runtimeName: node.runtimeName, hostIps: node.hostIps, now: this.deps.clock.now().wall },
      ...{ terminating: flags.terminating === true, finished: flags.finished === true },
      ...{ restartingAll: this.memory.restartingAll, hasRecursiveReadOnly: node.hasRecursiveReadOnly(this.current) },
      actualOf: (container) => this.resize.actualOf(container),
      actualPod: this.resize.actualPod,
      resizePending: this.resize.pending,
      resizing: this.isResizing ? { error: this.resize.error } : undefined,
      ...(failure === undefined ? {} : { failure }),
    });
    this.deps.publish(this.identity.uid, this.status);
  }

  /** The worker's catch-all: say it, wait a little longer each time, try again. */
  private failed(error: unknown): number {
    const waitMs = Math.min(ERROR_RETRY_MS.max, ERROR_RETRY_MS.first * 2 ** this.failures++);
    this.deps.log.error("the pod could not be brought to its state", error, { pod: this.identity.name, waitMs });
    const now = this.deps.clock.now();
    this.blockedUntil = now.mono + waitMs;
    this.deps.journal.setNext({ at: now.wall + waitMs, why: messageOf(error) });
    return waitMs;
  }
}

function isRestartingAll(known: PodStatus | undefined): boolean {
  return (
    known?.conditions?.some(({ type, status }) => type === "AllContainersRestarting" && status === "True") === true
  );
}

/** Whether a container asks for the restart of all that has not been done yet. */
function isAsked(pod: Pod, observed: ObservedPod): boolean {
  return restartTriggers(pod, observed).length > 0;
}
