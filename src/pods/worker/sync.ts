import { isAborted } from "../../lib/abort.ts";
import type { Instant } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Pod } from "../../model/generated/types.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { ReadmissionAnswer } from "../admission/allocations.ts";
import type { Rejection } from "../admission/facts.ts";
import { RejectionError } from "../admission/rejection-error.ts";
import type { PodRun } from "../execute/context.ts";
import { graceFor } from "../plan/grace.ts";
import { planPod } from "../plan/plan.ts";
import type { PodAction, PodPlan } from "../plan/pod-plan.ts";
import { DEFAULT_DEAD_LIMITS } from "../plan/prune.ts";
import { refusalOf } from "../plan/refusal.ts";
import { restartTriggers } from "../plan/restart-rules.ts";
import { isTerminalPhase } from "../status/derive.ts";
import type { WaitingReason } from "../status/derive-container.ts";
import { lostExits } from "../status/lost-exits.ts";
import { podRun, type SyncOperation, type WorkerParts } from "./parts.ts";
import { RESIZE_RETRY_MS } from "./resize.ts";

type Converge = Extract<PodPlan, { kind: "converge" }>;

/** Syncs a pod that should run: reads, plans, publishes its status, acts. */
export class PodSync {
  /** What the next sync is for. */
  operation: SyncOperation = "create";
  /** The version of the pod whose refusal is known. */
  private checked: Pod | undefined;
  private refusal: WaitingReason | undefined;
  /** True once what an earlier agent left was taken over. */
  isAdopted = false;
  /** Nothing of the pod ran when this agent began: before its first start its allocations are checked, as after a reboot. */
  private needsReadmission = false;
  /** The pod is of an earlier agent, and was not yet allocated what that one did not. */
  private mayLack = false;
  /** Why that cannot be had. */
  private lack: Rejection | undefined;
  /** What kept it from being allocated: it is tried again before anything of the pod starts. */
  private unallocated: { readonly error: unknown } | undefined;
  private noted: string | undefined;
  /** The version of the pod whose limits are set on its cgroup. */
  private limited: Pod | undefined;

  constructor(private readonly parts: WorkerParts) {}

  /** The next sync is for a new version of the pod. */
  updated(): void {
    if (this.operation === "sync") this.operation = "update";
  }

  /** One sync. Answers how long to sleep: 0 not at all, undefined until woken. */
  async run(interrupt: AbortSignal): Promise<number | undefined> {
    const { deps, identity, life } = this.parts;
    const { operation } = this;
    this.operation = "sync";
    const began = deps.clock.now().mono;
    try {
      const observed = await deps.observer.read(identity, { signal: interrupt });
      await this.resumeStop();
      return life().stop === undefined ? await this.sync(podRun(this.parts, observed, interrupt), observed) : 0;
    } finally {
      deps.measured?.(operation, deps.clock.now().mono - began);
    }
  }

  private async sync(given: PodRun, observed: ObservedPod): Promise<number | undefined> {
    const { deps, resize, retry, life } = this.parts;
    await this.adopt(given.pod, observed);
    this.refuse(given.pod);
    const run: PodRun = { ...given, pod: resize.settle(given.pod) };
    const now = deps.clock.now();
    const plan = this.plan(run.pod, observed, now);
    // Until its status is published, no new pod takes what this one lacks.
    if (!isTerminalPhase(this.parts.report.current?.phase) && plan.kind !== "finish") await this.allocateMissing(run);
    await this.ensureCgroup(run.pod, observed);
    // Whatever was requested during the waits comes first.
    if (life().stop !== undefined) return 0;
    this.publish(run, observed, plan);
    const deadlineMs = this.untilDeadline(now);
    if (deadlineMs !== undefined && deadlineMs <= 0) return this.expire();
    if (isTerminalPhase(this.parts.report.current?.phase) || plan.kind === "finish") return this.finish(run.pod);
    const readmission = this.readmission(run.pod);
    const blockedMs = retry.waitMs(now.mono);
    if (blockedMs > 0) return Math.min(blockedMs, deadlineMs ?? blockedMs);
    retry.unblock();
    if (this.unallocated !== undefined && plan.actions.some(isStart)) throw this.unallocated.error;
    const actions = this.permitted(run.pod, plan.actions, readmission);
    if (life().stop !== undefined) return 0;
    if (actions.length > 0) return this.perform(run, { observed, actions, deadlineMs });
    return this.parts.memory.takeUnreported() ? 0 : this.settle(plan, deadlineMs);
  }

  /** Goes on with a stop that an earlier agent began for a reason of its own. */
  private async resumeStop(): Promise<void> {
    if (this.isAdopted) return;
    const { stops, requestStop } = this.parts;
    const stop = await stops.load();
    if (stop !== undefined) requestStop(stop);
  }

  /** Takes over what an earlier agent left. Does nothing when called again. */
  private async adopt(pod: Pod, observed: ObservedPod): Promise<void> {
    const { deps, memory, resize, options } = this.parts;
    if (!this.isAdopted) {
      this.isAdopted = true;
      const isRunning = observed.containers.some(({ state }) => state === "running");
      this.needsReadmission = options.isAdopted === true && !isRunning;
      this.mayLack = options.isAdopted === true;
      memory.isMisplaced = isRunning && !deps.execute.cgroups.exists(pod);
      memory.adopt(observed);
    }
    await resize.adopt(observed);
  }

  private plan(pod: Pod, observed: ObservedPod, now: Instant): PodPlan {
    const { deps, memory, resize, identity, options, report, discards } = this.parts;
    discards.retain(observed);
    deps.probes.follow(pod, observed);
    const plan = planPod(
      pod,
      {
        observed,
        memory,
        probes: deps.probes.results(identity.uid),
        refusal: this.refusal,
        actualOf: (container) => resize.actualOf(container),
        actualPod: resize.actualPod,
        isUncertain: (id) => resize.isUncertain(id),
        isMisplaced: memory.isMisplaced,
        dead: { ...(options.deadLimits?.() ?? DEFAULT_DEAD_LIMITS), isDiscarded: (id) => discards.has(id) },
        // Containers that were removed to be restarted all together are not lost.
        lost: memory.restartingAll ? undefined : lostExits(report.current, observed),
      },
      now,
    );
    resize.follow(pod, observed);
    return plan;
  }

  private publish(run: PodRun, observed: ObservedPod, plan: PodPlan): void {
    const { memory, report } = this.parts;
    memory.noteWaits(plan);
    if (run.pod.spec.containers.every(({ name }) => run.ids.has(name)))
      memory.restartingAll = restartTriggers(run.pod, observed).length > 0;
    report.update(this.parts.pod(), observed, {});
    // Whoever sees its final phase may give its CPUs or devices to another pod, before its sandbox has stopped.
    const hasEnded = observed.containers.every(({ state }) => state === "exited");
    if (hasEnded && isTerminalPhase(report.current?.phase)) this.parts.killed();
  }

  /**
   * Allocates, once, what the pod would get if it were admitted today. Without it a pod that runs goes on; one of which
   * nothing runs is rejected, as in Kubernetes.
   */
  private async allocateMissing({ pod, interrupt }: PodRun): Promise<void> {
    if (!this.mayLack) return;
    this.mayLack = false;
    this.unallocated = undefined;
    const { deps } = this.parts;
    let rejection: Rejection | undefined;
    try {
      rejection = await deps.adopt(pod);
    } catch (error) {
      this.mayLack = true;
      if (isAborted(error, interrupt)) throw error;
      if (this.needsReadmission) {
        this.unallocated = { error };
        return;
      }
      // The disk may have room when the pod is synced again.
      rejection = { reason: "UnexpectedAdmissionError", message: messageOf(error) };
    }
    if (rejection?.message === this.lack?.message) return;
    this.lack = rejection;
    // A pod with CPUs of its own has no CPU quota.
    this.limited = undefined;
    if (rejection === undefined || this.needsReadmission) return;
    const message = `Running on without resources of its own: ${rejection.message}`;
    deps.journal.event("Warning", rejection.reason, message);
  }

  /** Whether the pod may start anything. Asked until it may: its plugin may be unavailable later, as in Kubernetes. */
  private readmission(pod: Pod): ReadmissionAnswer {
    if (!this.needsReadmission || this.unallocated !== undefined) return undefined;
    const answer = this.lack === undefined ? this.parts.deps.readmit(pod) : { rejection: this.lack };
    this.needsReadmission = answer !== undefined;
    return answer;
  }

  /** What may be done now: nothing is started before what it was allocated is there again. Rejects a pod that lacks it. */
  private permitted(pod: Pod, actions: readonly PodAction[], answer: ReadmissionAnswer): readonly PodAction[] {
    if (answer === undefined || !actions.some(isStart)) return actions;
    const { deps, requestStop } = this.parts;
    if ("waits" in answer) {
      this.noteWait(answer.waits);
      return [];
    }
    const { reason, message } = answer.rejection;
    deps.journal.event("Warning", reason, message);
    deps.journal.begin("admitted").fail(new RejectionError(answer.rejection));
    const failure = { reason, message: `Pod was rejected: ${message}`, untilReboot: true };
    requestStop({ graceSeconds: graceFor(pod), failure });
    return [];
  }

  /** Records once what the first start waits for. */
  private noteWait(what: string): void {
    if (this.noted === what) return;
    this.noted = what;
    this.parts.deps.journal.note("waiting", what);
  }

  private async perform(
    run: PodRun,
    {
      observed,
      actions: planned,
      deadlineMs,
    }: { observed: ObservedPod; actions: readonly PodAction[]; deadlineMs: number | undefined },
  ): Promise<number> {
    const { deps, running, actions } = this.parts;
    // Also while it waits for a volume, an image or a hook, a pod is stopped at its deadline.
    const deadline = deadlineMs === undefined ? undefined : deps.clock.after(deadlineMs, () => this.expire());
    try {
      const begin = running.begin.bind(running);
      await actions.perform(run, { observed, actions: planned, begin });
    } finally {
      deadline?.cancel();
    }
    return 0;
  }

  /** Finds out whether the pod needs what the node forbids or the agent lacks; recorded once, shown as long as it does. */
  private refuse(pod: Pod): void {
    if (this.checked === pod) return;
    this.checked = pod;
    const { deps, memory } = this.parts;
    const before = this.refusal;
    this.refusal = refusalOf(pod, deps.execute.node.security?.());
    memory.refuse(pod, this.refusal, before);
    if (this.refusal === undefined || this.refusal.message === before?.message) return;
    deps.journal.event("Warning", "Failed", `Error: ${this.refusal.message}`);
  }

  /** Sets the limits of a pod that runs already, from an earlier agent or in another version, once. */
  private async ensureCgroup(pod: Pod, observed: ObservedPod): Promise<void> {
    const { deps, memory, resize, identity } = this.parts;
    const { isInProgress } = resize;
    if ((this.limited === pod && !isInProgress) || observed.sandboxes[0]?.state !== "ready") return;
    // Created too early, it would hide from the next agent that the containers are not in it.
    if (memory.isMisplaced) return;
    // Nothing of it runs, and with CPUs of its own it will have no quota.
    if (this.unallocated !== undefined) return;
    // Lower limits of the whole pod come after those of its containers.
    this.limited = isInProgress ? undefined : pod;
    await deps.execute.cgroups.ensure(pod, { growOnly: isInProgress }).catch((error: unknown) => {
      const { name, namespace, uid } = identity;
      deps.log.warn("Failed to set limits of running pod", {
        pod: name,
        namespace,
        podUID: uid,
        error: messageOf(error),
      });
    });
  }

  /** Nothing to do now; answers when there will be. */
  private settle(plan: Converge, deadlineMs: number | undefined): number | undefined {
    const { deps, resize } = this.parts;
    const wall = deps.clock.now().wall;
    const first = [...plan.waits].sort((a, b) => a.afterMs - b.afterMs)[0];
    deps.journal.setNext(first && { at: wall + first.afterMs, why: `${first.container}: ${first.reason}` });
    const resizeMs = resize.pending === undefined ? undefined : RESIZE_RETRY_MS;
    const sleeps = [first?.afterMs, deadlineMs, resizeMs, plan.pruneAfterMs].filter((ms) => ms !== undefined);
    return sleeps.length === 0 ? undefined : Math.max(1, Math.min(...sleeps));
  }

  /** Milliseconds until `activeDeadlineSeconds` is over; undefined if the pod has none, or has not started. */
  untilDeadline(now: Instant): number | undefined {
    const seconds = this.parts.pod().spec.activeDeadlineSeconds;
    const started = this.parts.report.current?.startTime;
    if (seconds === undefined || started === undefined) return undefined;
    return Date.parse(started) + seconds * 1000 - now.wall;
  }

  private finish(pod: Pod): 0 {
    this.parts.requestStop({ graceSeconds: graceFor(pod) });
    return 0;
  }

  private expire(): 0 {
    const message = "Pod was active on the node longer than the specified deadline";
    this.parts.deps.journal.event("Normal", "DeadlineExceeded", message);
    const failure = { reason: "DeadlineExceeded", message };
    this.parts.requestStop({ graceSeconds: graceFor(this.parts.pod()), failure });
    return 0;
  }
}

function isStart(action: PodAction): boolean {
  return action.do === "createSandbox" || action.do === "startContainer";
}
