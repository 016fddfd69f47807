import { AbortedError, AbortScope, isAborted } from "../lib/abort.ts";
import type { Clock, Instant } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { containerHash } from "../model/container-hash.ts";
import type { Pod, PodStatus } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { ProbeKind } from "../model/probe.ts";
import { StartError } from "../model/start-error.ts";
import type { PodIdentity } from "../model/step.ts";
import { afterRestart, type CrashLimits, type CrashState } from "./crash-backoff.ts";
import { derivePodStatus, isTerminalPhase } from "./derive.ts";
import type { WaitingReason } from "./derive-container.ts";
import { withProbeFlags } from "./derive-flags.ts";
import type { ExecuteDeps, PodRun } from "./execute/context.ts";
import { createSandbox } from "./execute/create-sandbox.ts";
import { killContainer, stopPod } from "./execute/kill.ts";
import { removeContainer, removePod } from "./execute/remove.ts";
import { startContainer } from "./execute/start-container.ts";
import { mustInterrupt } from "./interrupt.ts";
import type { PodJournal } from "./journal.ts";
import { type ContainerStart, type PodAction, type PodPlan, planPod, type StartHold } from "./plan.ts";
import { needsSync, type PodProbes } from "./probes.ts";
import type { StartSlot } from "./start-slot.ts";

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
    /** What the pod has in the runtime is not certain any more. */
    doubt(uid: string): void;
  };
  readonly probes: PodProbes;
  readonly journal: PodJournal;
  readonly slot: StartSlot;
  readonly clock: Clock;
  readonly log: Logger;
  /** Takes the newly derived status. */
  publish(uid: string, status: PodStatus): void;
  /** Aborts a while after the agent was told to stop: until then creates and starts are finished. */
  readonly late: AbortSignal;
  /** Called when the worker enters another phase. */
  onPhase(worker: PodWorker): void;
}

export interface WorkerOptions {
  readonly crashLimits: CrashLimits;
  /** The pod is only known from the runtime: stop it, take it away. */
  readonly orphan?: boolean;
}

interface Stop {
  readonly graceSeconds: number;
  readonly failure?: { readonly reason: string; readonly message: string };
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
  private woken = true;
  private rouse: (() => void) | undefined;
  private scope: AbortScope | undefined;
  private acting: { action: PodAction; pod: Pod; graceSeconds?: number } | undefined;
  private failures = 0;
  /** Monotonic time before which a failed action is not tried again, however often the worker is woken. */
  private blockedUntil = 0;
  private readonly crashes = new Map<string, CrashState>();
  private readonly holds = new Map<string, StartHold>();
  private readonly replacing = new Set<string>();
  private readonly preStopped = new Set<string>();
  private readonly waiting = new Map<string, WaitingReason>();
  /** Containers whose failure no status has shown yet: `ErrImagePull` is said before `ImagePullBackOff`. */
  private readonly unsaid = new Set<string>();

  constructor(
    pod: Pod,
    private readonly deps: WorkerDeps,
    private readonly options: WorkerOptions,
  ) {
    this.current = pod;
    this.identity = podIdentity(pod);
    if (options.orphan === true) {
      this.isWanted = false;
      this.stop = { graceSeconds: 1 };
    }
  }

  get phase(): WorkerPhase {
    return this.state;
  }

  get pod(): Pod {
    return this.current;
  }

  get lastStatus(): PodStatus | undefined {
    return this.status;
  }

  /** Told to stop, and not only done by itself. */
  get isStopping(): boolean {
    return !this.isWanted;
  }

  /** The source has another version under the same UID. */
  update(pod: Pod): void {
    this.current = pod;
    this.wake({ retry: true });
  }

  /**
   * Something may have changed: look again. Cheap, and harmless when nothing has. `retry` also ends the wait after an
   * error, for wake-ups that make success more likely (another spec, the runtime is back).
   */
  wake(options: { retry?: boolean } = {}): void {
    this.woken = true;
    if (options.retry === true) this.blockedUntil = 0;
    if (this.acting !== undefined && mustInterrupt({ pod: this.current, stop: this.stop }, this.acting)) {
      this.scope?.abort(new AbortedError("planned anew"));
    }
    this.rouse?.();
  }

  /** The source no longer has the pod: stop it with its grace and take everything away. The grace can only shrink. */
  remove(options: { graceSeconds?: number; keepLogs?: boolean } = {}): void {
    const own =
      this.current.metadata.deletionGracePeriodSeconds ?? this.current.spec.terminationGracePeriodSeconds ?? 30;
    const asked = Math.max(1, options.graceSeconds ?? own);
    this.stop = { ...this.stop, graceSeconds: Math.min(asked, this.stop?.graceSeconds ?? asked) };
    this.isWanted = false;
    if (options.keepLogs !== undefined) this.keepLogs = options.keepLogs;
    this.wake({ retry: true });
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

  /** Runs until the pod is gone or the agent stops. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (this.state !== "gone" && !signal.aborted) {
      this.woken = false;
      const scope = new AbortScope([signal]);
      this.scope = scope;
      let sleepMs: number | undefined;
      try {
        sleepMs = await this.step(scope.signal);
        if (this.blockedUntil === 0) this.failures = 0;
      } catch (error) {
        // Whatever was under way may have been done all the same.
        this.deps.observer.doubt(this.identity.uid);
        sleepMs = isAborted(error, scope.signal) ? 0 : this.failed(error);
      } finally {
        this.acting = undefined;
        this.deps.slot.release();
        scope.dispose();
      }
      if (sleepMs !== 0) await this.sleep(sleepMs, signal);
    }
  }

  /** One look at the runtime and what follows from it. Answers how long to sleep: 0 not at all, undefined until woken. */
  private async step(interrupt: AbortSignal): Promise<number | undefined> {
    if (this.state === "stopped" && this.isWanted) return undefined;
    const observed = await this.deps.observer.read(this.identity, { signal: interrupt });
    const run = this.newRun(observed, interrupt);
    switch (this.state) {
      case "syncing":
        return this.stop === undefined ? this.sync(run, observed) : this.enter("stopping");
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
    return { pod: this.current, journal, slot, interrupt, finish: this.deps.late, sandbox, podIp, preStopped };
  }

  private enter(phase: WorkerPhase): number {
    this.state = phase;
    // The end is planned on what the runtime lists.
    this.deps.observer.doubt(this.identity.uid);
    if (phase === "stopping") this.deps.probes.terminating(this.identity.uid);
    if (phase === "stopped") this.deps.probes.forget(this.identity.uid);
    this.deps.onPhase(this);
    return 0;
  }

  private async sync(run: PodRun, observed: ObservedPod): Promise<number | undefined> {
    const now = this.deps.clock.now();
    const { crashes, holds, replacing } = this;
    this.deps.probes.follow(run.pod, observed);
    const probes = this.deps.probes.results(this.identity.uid);
    const plan = planPod(run.pod, { observed, probes, memory: { crashes, holds, replacing } }, now);
    this.noteWaits(plan);
    if (replacing.size === 0) this.publish(observed, {});
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
      if (this.unsaid.size === 0) return this.settle(plan, deadlineMs);
      this.unsaid.clear();
      return 0;
    }
    await this.perform(run, observed, plan.actions);
    return 0;
  }

  /** Nothing to do now: say when there will be. */
  private settle(plan: Extract<PodPlan, { kind: "converge" }>, deadlineMs: number | undefined): number | undefined {
    const wall = this.deps.clock.now().wall;
    const first = [...plan.waits].sort((a, b) => a.afterMs - b.afterMs)[0];
    this.deps.journal.setNext(first && { at: wall + first.afterMs, why: `${first.container}: ${first.reason}` });
    const sleeps = [first?.afterMs, deadlineMs].filter((ms) => ms !== undefined);
    return sleeps.length === 0 ? undefined : Math.max(1, Math.min(...sleeps));
  }

  private noteWaits(plan: PodPlan): void {
    if (plan.kind !== "converge") return;
    const { journal } = this.deps;
    for (const { container, reason, message } of plan.waits) {
      if (this.waiting.get(container)?.reason === reason || this.unsaid.has(container)) continue;
      this.waiting.set(container, { reason, message });
      journal.note("backoff", message, container);
      if (reason !== "CrashLoopBackOff") continue;
      const text = `Back-off restarting failed container ${container} in pod ${this.identity.name}_${this.identity.namespace}(${this.identity.uid})`;
      journal.event("Warning", "BackOff", { message: text, container });
    }
  }

  private async perform(run: PodRun, observed: ObservedPod, actions: readonly PodAction[]): Promise<void> {
    let volumesReady = false;
    for (const action of actions) {
      run.interrupt.throwIfAborted();
      this.acting = { action, pod: run.pod };
      if (!volumesReady && (action.do === "createSandbox" || action.do === "startContainer")) {
        await this.prepareVolumes(run);
        volumesReady = true;
      }
      if (!(await this.act(run, observed, action))) return;
    }
  }

  /** False when the actions after this one make no sense any more. */
  private async act(run: PodRun, observed: ObservedPod, action: PodAction): Promise<boolean> {
    const { execute, observer } = this.deps;
    const graceSeconds = run.pod.spec.terminationGracePeriodSeconds ?? 30;
    if (removes(action)) observer.doubt(this.identity.uid);
    switch (action.do) {
      case "stopPod":
        run.journal.event("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
        await stopPod(execute, run, { observed, graceSeconds });
        return true;
      case "createSandbox":
        await createSandbox(execute, run, action.attempt);
        return true;
      case "killContainer":
        if (action.replace === true) this.replacing.add(action.container.name);
        await killContainer(execute, run, { ...action, graceSeconds: action.graceSeconds ?? graceSeconds });
        return true;
      case "startContainer":
        return (await this.start(run, action.start)) || action.start.kind === "regular";
      case "removeContainer":
        await removeContainer(execute, { pod: this.identity, container: action.container }, { signal: run.finish });
        return true;
      case "removeSandbox":
        await execute.runtime.removeSandbox(action.sandboxId, { signal: run.finish });
        return true;
    }
  }

  private async prepareVolumes(run: PodRun): Promise<void> {
    const volumes = run.pod.spec.volumes ?? [];
    if (volumes.length === 0) return;
    const names = volumes.map((volume) => volume.name).join(", ");
    const step = run.journal.begin("volumes", { detail: names });
    // The events of failed tries are the volumes' own; a wait that took too long has none, as in Kubernetes.
    const onWait = (detail: string): void => step.detail(detail || names);
    try {
      await this.deps.execute.volumes.prepare(run.pod, { signal: run.interrupt, onWait });
      step.done(names);
    } catch (error) {
      if (run.interrupt.aborted) step.abort();
      else step.fail(error);
      throw error;
    }
  }

  private async start(run: PodRun, start: ContainerStart): Promise<boolean> {
    const now = this.deps.clock.now();
    try {
      await startContainer(this.deps.execute, run, start);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      this.deps.observer.doubt(this.identity.uid);
      this.holdBack(run, start, error);
      return false;
    } finally {
      // Also a start that failed counts as a restart, so that a command that does not exist backs off.
      this.countRestart(start, now);
    }
    this.holds.delete(start.name);
    this.replacing.delete(start.name);
    this.waiting.delete(start.name);
    return true;
  }

  private countRestart(start: ContainerStart, now: Instant): void {
    if (start.previousEnd === undefined) return;
    const times = { finishedAt: start.previousEnd, wallNow: now.wall };
    this.crashes.set(start.name, afterRestart(this.crashes.get(start.name), times, this.options.crashLimits));
  }

  private holdBack(run: PodRun, start: ContainerStart, error: StartError): void {
    const list = [...run.pod.spec.containers, ...(run.pod.spec.initContainers ?? [])];
    const container = list.find(({ name }) => name === start.name);
    this.waiting.set(start.name, { reason: error.reason, message: error.message });
    this.unsaid.add(start.name);
    this.holds.set(start.name, {
      untilMono: this.deps.clock.now().mono + error.retry.afterMs,
      hash: container === undefined ? "" : containerHash(container),
      reason: error.retry.reason ?? error.reason,
      message: error.retry.message ?? error.message,
    });
  }

  private async stopAll(run: PodRun, observed: ObservedPod): Promise<number> {
    const blockedMs = this.blockedUntil - this.deps.clock.now().mono;
    if (blockedMs > 0) return blockedMs;
    const graceSeconds = this.stop?.graceSeconds ?? 1;
    this.acting = { action: { do: "stopPod", why: "the pod is stopped" }, pod: run.pod, graceSeconds };
    if (this.options.orphan !== true) this.publish(observed, { terminating: true });
    const step = run.journal.begin("terminate", { detail: `grace ${graceSeconds}s` });
    try {
      await stopPod(this.deps.execute, run, { observed, graceSeconds });
      this.deps.observer.doubt(this.identity.uid);
      const after = await this.deps.observer.read(this.identity, { signal: run.interrupt });
      const alive = after.containers.filter((container) => container.state === "running");
      if (alive.length > 0)
        throw new Error(`still running after the stop: ${alive.map(({ name }) => name).join(", ")}`);
      if (this.options.orphan !== true) this.publish(after, { terminating: true, finished: true });
      await this.deps.execute.volumes.teardown(this.identity.uid, { signal: run.interrupt });
      await this.deps.execute.cgroups.remove(this.identity.uid);
      step.done(this.status?.phase ?? "");
    } catch (error) {
      if (run.interrupt.aborted) step.abort("with a shorter grace");
      else {
        step.fail(error);
        run.journal.event("Warning", "FailedKillPod", `error killing pod: ${messageOf(error)}`);
      }
      throw error;
    }
    if (this.isWanted) run.journal.note("finished", this.status?.phase ?? "");
    return this.enter("stopped");
  }

  /** Milliseconds until `activeDeadlineSeconds` is over. */
  private untilDeadline(now: Instant): number | undefined {
    const seconds = this.current.spec.activeDeadlineSeconds;
    const started = this.status?.startTime;
    if (seconds === undefined || started === undefined) return undefined;
    return Date.parse(started) + seconds * 1000 - now.wall;
  }

  private pastDeadline(): number {
    const message = "Pod was active on the node longer than the specified deadline";
    this.stop = {
      graceSeconds: this.current.spec.terminationGracePeriodSeconds ?? 30,
      failure: { reason: "DeadlineExceeded", message },
    };
    this.deps.journal.event("Normal", "DeadlineExceeded", message);
    return this.enter("stopping");
  }

  private publish(observed: ObservedPod, flags: { terminating?: boolean; finished?: boolean }): void {
    const { node } = this.deps.execute;
    const failure = this.stop?.failure;
    this.status = derivePodStatus({
      ...{ pod: this.current, observed, previous: this.status, waiting: this.waiting },
      probes: this.deps.probes.results(this.identity.uid),
      ...{ runtimeName: node.runtimeName, hostIps: node.hostIps, now: this.deps.clock.now().wall },
      ...{ terminating: flags.terminating === true, finished: flags.finished === true },
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

  private sleep(ms: number | undefined, signal: AbortSignal): Promise<void> {
    if (this.woken || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = ms === undefined ? undefined : this.deps.clock.after(ms, () => done());
      const done = (): void => {
        timer?.cancel();
        signal.removeEventListener("abort", done);
        this.rouse = undefined;
        resolve();
      };
      this.rouse = done;
      signal.addEventListener("abort", done, { once: true });
    });
  }
}

/** After these, only a list tells what is left. */
function removes(action: PodAction): boolean {
  if (action.do === "startContainer") return action.start.replaces !== undefined;
  return action.do === "stopPod" || action.do === "removeContainer" || action.do === "removeSandbox";
}
