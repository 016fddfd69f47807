import { isAborted } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { Wakes } from "../../lib/wakes.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import type { ProbeKind } from "../../model/probe.ts";
import type { PodIdentity } from "../../model/step.ts";
import { graceFor } from "../plan/grace.ts";
import type { StatusFailure } from "../status/derive.ts";
import type { Discarded } from "./discards.ts";
import {
  advance,
  type Lifecycle,
  type LifecycleEvent,
  nextStep,
  ORPHANED,
  WANTED,
  type WorkerPhase,
  type WorkerStep,
} from "./lifecycle.ts";
import { type WorkerDeps as PartDeps, type WorkerOptions, type WorkerParts, workerParts } from "./parts.ts";
import { PodTrace } from "./pod-trace.ts";
import { needsSync } from "./probes.ts";
import { PodSync } from "./sync.ts";
import { PodTermination } from "./termination.ts";

export interface WorkerDeps extends PartDeps {
  /** Called when the worker has entered another phase. */
  onPhase(worker: PodWorker): void;
  /** Called once nothing of the pod runs any more, before it has stopped. */
  onKilled(worker: PodWorker): void;
  /** Called when a step has failed, and is tried again. */
  onFailed(worker: PodWorker): void;
}

/**
 * Drives one pod through its lifecycle, one step at a time; built and woken by the `WorkerPool`. What is decided is in
 * `lifecycle.ts` (phase and stop intent) and in `plan/` (actions); this is the loop that feeds them.
 *
 * A wake-up carries no facts. Every step reads the runtime after the last action, plans, acts, and reads again; a
 * status is published only after reading, never between a kill and the start that belongs to it.
 */
export class PodWorker {
  readonly identity: PodIdentity;
  /** The newest version of the pod. */
  pod: Pod;
  /** Its phase and how it is to stop; set only here. */
  life: Lifecycle;
  private failures = 0;
  private readonly wakes: Wakes;
  private readonly parts: WorkerParts;
  private readonly sync: PodSync;
  private readonly termination: PodTermination;
  private readonly trace: PodTrace;

  constructor(
    pod: Pod,
    private readonly deps: WorkerDeps,
    options: WorkerOptions,
  ) {
    this.pod = pod;
    this.identity = podIdentity(pod);
    this.life = options.orphan === true ? ORPHANED : WANTED;
    this.wakes = new Wakes(deps.clock);
    const { identity } = this;
    this.parts = workerParts(
      {
        identity,
        pod: () => this.pod,
        life: () => this.life,
        requestStop: (stop) => this.request({ on: "stopRequested", stop }),
        killed: () => this.killed(),
      },
      deps,
      options,
    );
    this.sync = new PodSync(this.parts);
    this.termination = new PodTermination(this.parts);
    this.trace = new PodTrace(deps.tracer, identity);
    if (pod.metadata.deletionTimestamp !== undefined) this.update(pod);
  }

  /** The pod with the requests and limits that it was allocated, which is what it counts for. */
  get allocated(): Pod {
    return this.parts.resize.view(this.pod);
  }

  /** True once steps of it have failed several times: not by a passing error. */
  get hasFailed(): boolean {
    return this.failures > 2;
  }

  /** True if it wants more than the node has room for: it is woken when there is more. */
  get awaitsRoom(): boolean {
    return this.parts.resize.pending !== undefined;
  }

  /** True once it is known what an earlier agent did to the pod, such as that its eviction began. */
  get isAdopted(): boolean {
    return this.sync.isAdopted;
  }

  /** The status that was published last, or known before this agent began. */
  get lastStatus(): PodStatus | undefined {
    return this.parts.report.current;
  }

  /** True if the pod is deleted or no longer wanted, not if it only ended by itself. */
  get isStopping(): boolean {
    return !this.life.isWanted || this.pod.metadata.deletionTimestamp !== undefined;
  }

  /** The source has another version under the same UID; a deleted one is stopped, and kept until its source has none. */
  update(pod: Pod): void {
    this.pod = pod;
    this.sync.updated();
    if (pod.metadata.deletionTimestamp === undefined) this.wake({ retry: true });
    else this.request({ on: "stopRequested", stop: { graceSeconds: graceFor(pod) } });
  }

  /** The source no longer has the pod: it is stopped, and everything of it removed. */
  remove({ graceSeconds, keepLogs }: { graceSeconds?: number; keepLogs?: boolean } = {}): void {
    // The grace period of an orphaned pod is recorded on its containers.
    const own = this.parts.options.orphan === true ? Number.POSITIVE_INFINITY : graceFor(this.pod);
    this.request({ on: "removed", stop: { graceSeconds: graceSeconds ?? own }, keepLogs });
  }

  /** The node needs its room: the pod is stopped as Failed, and kept for its source to see. */
  evict(failure: StatusFailure, graceSeconds: number = graceFor(this.pod)): void {
    this.request({ on: "stopRequested", stop: { graceSeconds: Math.min(graceSeconds, graceFor(this.pod)), failure } });
  }

  /** The node has too many terminated containers: some are removed now. `"all"` counts only for a stopped pod. */
  discard(what: Discarded): Promise<void> {
    if (what === "all" && this.life.phase !== "stopped") return Promise.resolve();
    const done = this.parts.discards.ask(what);
    this.wake();
    return done;
  }

  /** A probe has a new result. Ready and started go into the last status at once, also while the worker is busy. */
  probed(kind: ProbeKind): void {
    this.parts.report.probed(this.pod);
    if (needsSync(kind)) this.wake();
  }

  /**
   * Something may have changed. Cheap, and harmless when nothing has. `retry` also ends the wait after an error, for
   * wake-ups that make success more likely (another spec, the runtime is back).
   */
  wake({ retry = false }: { retry?: boolean } = {}): void {
    if (retry) this.parts.retry.unblock();
    this.parts.running.check();
    this.wakes.wake();
  }

  /** Runs until the pod is gone or the agent stops. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { running, retry } = this.parts;
    while (this.life.phase !== "gone" && !signal.aborted) {
      this.wakes.clear();
      const interrupt = running.open(signal);
      let sleepMs: number | undefined;
      try {
        const next = nextStep(this.life);
        sleepMs = await this.trace.pass(next, this.sync.operation, () => this.step(next, interrupt));
        retry.succeeded();
      } catch (error) {
        sleepMs = isAborted(error, interrupt) ? 0 : this.failed(error);
      } finally {
        running.close();
        this.deps.slot.release();
        this.trace.passed(this.pod, this.life, this.lastStatus);
      }
      if (sleepMs !== 0) await this.wakes.sleep(sleepMs, signal);
    }
  }

  /** One step of the lifecycle. Answers how long to sleep: 0 not at all, undefined until woken. */
  private async step(next: WorkerStep, interrupt: AbortSignal): Promise<number | undefined> {
    switch (next) {
      case "sync":
        return this.sync.run(interrupt);
      case "enterStopping":
        return this.enter("stopping");
      case "stop":
        return (await this.termination.stop(interrupt)) || this.enter("stopped");
      case "remove":
        return (await this.termination.remove(interrupt)) || this.enter("gone");
      case "rest":
        return this.termination.discard(interrupt);
      case "end":
        return undefined;
    }
  }

  private enter(phase: WorkerPhase): 0 {
    this.life = advance(this.life, { on: "entered", phase });
    if (phase === "stopping") this.deps.probes.terminating(this.identity.uid);
    if (phase === "stopped") this.deps.probes.forget(this.identity.uid);
    if (phase === "gone") this.parts.discards.done();
    this.deps.onPhase(this);
    return 0;
  }

  private killed(): void {
    if (this.life.isKilled) return;
    this.life = advance(this.life, { on: "killed" });
    this.deps.onKilled(this);
  }

  /** Takes a request to stop and wakes the loop for it. */
  private request(event: LifecycleEvent): void {
    this.life = advance(this.life, event);
    this.wake({ retry: true });
  }

  /** The catch-all of the worker: logs the error and answers how long to wait before the next step. */
  private failed(error: unknown): number {
    const { wall, mono } = this.deps.clock.now();
    const waitMs = this.parts.retry.failed(error, mono);
    this.failures++;
    this.deps.onFailed(this);
    const { name, namespace, uid } = this.identity;
    this.deps.log.error("Failed to sync pod", error, { pod: name, namespace, podUID: uid, waitMs });
    this.deps.journal.setNext({ at: wall + waitMs, why: messageOf(error) });
    const deadlineMs = this.life.phase === "syncing" ? this.sync.untilDeadline({ wall, mono }) : undefined;
    // Past it the step that ends the pod has failed.
    return deadlineMs !== undefined && deadlineMs > 0 ? Math.min(waitMs, deadlineMs) : waitMs;
  }
}
