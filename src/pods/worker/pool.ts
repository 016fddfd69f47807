import type { Abortable } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import { Lane } from "../../lib/lane.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import { isCriticalPod, isNodeCriticalPod, isStaticPod, podIdentity } from "../../model/pod-facts.ts";
import { unsupportedFields } from "../../model/pod-support.ts";
import type { ProbeKind } from "../../model/probe.ts";
import { allocationOf } from "../admission/allocation.ts";
import { PodAllocations } from "../admission/allocations.ts";
import type { Rejection, ResizeVerdict } from "../admission/facts.ts";
import { RejectionError } from "../admission/rejection-error.ts";
import { ResizeQueue } from "../admission/resize-queue.ts";
import { type AdmissionVerdict, admissionVerdict } from "../admission/verdict.ts";
import { swapResizeProblem } from "../config/swap-limit.ts";
import type { DesiredChange, DesiredPod } from "../desired.ts";
import type { ListedPod } from "../observe/observe.ts";
import { DEFAULT_DEAD_LIMITS } from "../plan/prune.ts";
import { rejectedStatus } from "../status/rejected.ts";
import { AdmissionQueue } from "./admission-queue.ts";
import type { Discarded } from "./discards.ts";
import { allocatedPods, isEnding, nodeLoad } from "./node-load.ts";
import { OrphanedPods } from "./orphaned-pods.ts";
import type { WorkerOptions } from "./parts.ts";
import { PodStatuses } from "./pod-statuses.ts";
import type { PoolDeps, PoolOptions } from "./pool-deps.ts";
import { StartSlot } from "./start-slot.ts";
import { PodWorker } from "./worker.ts";

/**
 * One worker per pod UID. A static pod also reserves its name: another version of it waits until the one before is
 * gone. Pods of the API server never wait for others of their name, as in Kubernetes.
 */
export class WorkerPool {
  private readonly workers = new Map<string, PodWorker>();
  private readonly statuses = new PodStatuses();
  private readonly runs = new Set<Promise<void>>();
  private readonly lane: Lane;
  private readonly allocations: PodAllocations;
  private readonly queue: AdmissionQueue;
  private readonly orphans: OrphanedPods;
  private readonly resizes = new ResizeQueue();
  /** UIDs of the last list of the runtime that are not gone since: they were admitted once, and are not asked again. */
  private inRuntime: Set<string> | undefined;
  /** Adopted pods without a status yet: whether they still need their room is not known. */
  private readonly unread = new Set<string>();
  private hasReleasedOthers = false;

  constructor(
    private readonly deps: PoolDeps,
    private readonly options: PoolOptions,
    private readonly signal: AbortSignal,
  ) {
    this.lane = new Lane(options.maxConcurrentStarts, { signal });
    const wakeAll = (): void => {
      for (const worker of this.workers.values()) worker.wake();
    };
    options.deadLimits?.onChange(wakeAll, { signal });
    const { desired, journal, execute, log, clock } = deps;
    const { files, node } = execute;
    this.allocations = new PodAllocations({ allocators: deps.allocators ?? [], files, log }, node.paths);
    this.queue = new AdmissionQueue({
      desired,
      journal,
      clock,
      log,
      allocations: this.allocations,
      signal,
      isKnown: (uid) => this.isInRuntime(uid),
      verdict: (pod) => this.verdict(pod),
      preempt: (victims, shortOf) => this.preempt(victims, shortOf),
      admitted: (pod, decided) => this.start(pod, decided),
      rejected: (pod, rejection) => this.reject(pod, rejection),
    });
    this.orphans = new OrphanedPods({
      desired,
      hasWorker: (uid) => this.workers.has(uid),
      isOwned: (pod) => options.ownsOrphan(pod),
      stop: (pod) => this.stopOrphan(pod),
    });
  }

  /** Takes over what a source changed. */
  apply(change: DesiredChange): void {
    for (const pod of change.removed) this.removed(pod);
    for (const pod of change.added) this.added(pod);
    for (const { uid, pod } of change.updated) this.workers.get(uid)?.update(pod);
    this.queue.review();
    this.orphans.stopAll();
    this.releaseOthers();
  }

  /** Wakes the worker of a pod, or has its admission decided again; a wake-up carries no facts. */
  wake(uid: string): void {
    this.workers.get(uid)?.wake();
    if (this.queue.has(uid)) this.queue.review();
  }

  /** A probe of this pod has a new result. */
  probed(uid: string, kind: ProbeKind): void {
    this.workers.get(uid)?.probed(kind);
  }

  /** Takes over a list of the runtime, after a (re)connection or by the audit: workers resync, orphans are stopped. */
  listed(pods: ReadonlyMap<string, ListedPod>): void {
    this.orphans.listed(pods);
    this.inRuntime = new Set(pods.keys());
    for (const worker of this.workers.values()) worker.wake({ retry: true });
    this.orphans.stopAll();
    this.releaseOthers();
    this.queue.open();
  }

  /** Has terminated containers of a pod removed now; `"all"`, also sandboxes, counts only for a stopped pod. */
  discard(uid: string, what: Discarded): Promise<void> {
    return this.workers.get(uid)?.discard(what) ?? Promise.resolve();
  }

  /** True while pods wait for their turn to be started. */
  get hasWaiting(): boolean {
    return this.lane.waiting > 0;
  }

  /** True while a pod is being started, or waits for it. */
  get isStarting(): boolean {
    return this.lane.running > 0 || this.hasWaiting;
  }

  /** UIDs of all pods with a worker, orphans included. */
  uids(): readonly string[] {
    return [...this.workers.keys()];
  }

  worker(uid: string): PodWorker | undefined {
    return this.workers.get(uid);
  }

  status(uid: string): PodStatus | undefined {
    return this.statuses.get(uid);
  }

  /** Calls `fn` with the UID after each new status, until the signal aborts. */
  onStatus(fn: (uid: string) => void, options: Abortable): void {
    this.statuses.onChange(fn, options);
  }

  /** Resolves when every worker has returned; call after the signal was aborted. */
  async idle(): Promise<void> {
    while (this.runs.size > 0) await Promise.all(this.runs);
  }

  private removed({ uid, pod }: DesiredPod): void {
    this.queue.delete(uid);
    const worker = this.workers.get(uid);
    if (worker !== undefined) return worker.remove({ keepLogs: false });
    this.drop(uid);
    // One that the runtime still has is stopped as orphaned.
    if (this.inRuntime === undefined || this.isInRuntime(uid)) return;
    // It may have volumes, devices and more of before a reboot, but needs no room on the node.
    this.launch({ ...pod, spec: { ...pod.spec, containers: [], initContainers: [] } }, { orphan: true });
  }

  private added(desired: DesiredPod): void {
    const { uid, pod } = desired;
    this.queue.add(desired);
    const earlier = this.workers.get(uid);
    if (earlier === undefined) return;
    // The same UID comes back while its worker still ends: the logs tell the next one how often it was started.
    earlier.remove({ keepLogs: true });
    this.deps.counted?.restarted(pod);
  }

  /** True when nothing of the pod runs or is mounted any more, or it never got that far. */
  isFinished(uid: string): boolean {
    const phase = this.workers.get(uid)?.life.phase;
    return phase === undefined ? !this.queue.has(uid) : phase === "stopped" || phase === "gone";
  }

  /** True if the last list of the runtime had something of the pod. */
  isInRuntime(uid: string): boolean {
    return this.inRuntime?.has(uid) === true;
  }

  private verdict({ uid, pod }: DesiredPod): AdmissionVerdict & { readonly isAdopted?: boolean } {
    const holder = this.holderOf(pod);
    if (holder !== undefined) {
      const { name, uid: of } = holder.identity;
      return { kind: "waits", why: `for the end of the earlier ${name} (${of})` };
    }
    // What is terminal, or asked to go, needs no room any more: its worker only stops it. What runs was admitted before.
    if (isEnding(pod) || this.isInRuntime(uid)) return { kind: "admitted", isAdopted: true };
    if (this.allocations.isLackedBy(pod) && this.isUnreadLacking())
      return { kind: "waits", why: "for earlier pods to get what they lack", keepsRoom: true };
    // It ran before a reboot: what it was allocated is still its own.
    const again = this.allocations.readmit(pod);
    if (again !== undefined)
      return "waits" in again ? { kind: "waits", why: again.waits, keepsRoom: true } : { kind: "rejected", ...again };
    const load = { ...nodeLoad(this.workers.values(), this.unread), undecided: this.queue.undecided(uid) };
    return admissionVerdict(pod, load, this.options.node());
  }

  /**
   * True while pods of an earlier run are to get what it did not allocate to them: they come before those that are new.
   * Nobody waits for one that cannot be read, or for which nothing can be persisted.
   */
  private isUnreadLacking(): boolean {
    return [...this.unread].some((uid) => {
      const worker = this.workers.get(uid);
      return worker !== undefined && !worker.hasFailed && this.allocations.isLackedBy(worker.allocated);
    });
  }

  private start({ uid, pod, source }: DesiredPod, admitted: Pod | undefined): void {
    const journal = this.deps.journal.of(podIdentity(pod));
    journal.note("admitted", `from ${source}`);
    for (const field of unsupportedFields(pod).warned) journal.event("Warning", "FieldNotSupported", field);
    // A status of an earlier life under the same UID is stale.
    this.statuses.delete(uid);
    const isAdopted = this.isInRuntime(uid);
    if (isAdopted) this.unread.add(uid);
    const known = source === "api" && pod.status?.startTime !== undefined ? { known: pod.status } : {};
    this.launch(pod, { ...known, isAdopted, ...(admitted && { admitted: allocationOf(admitted) }) });
  }

  private reject(pod: Pod, rejection: Rejection): void {
    const { uid } = podIdentity(pod);
    // A pod of before a reboot still has what it was allocated.
    void this.allocations.release(uid);
    const journal = this.deps.journal.of(podIdentity(pod));
    journal.event("Warning", rejection.reason, rejection.message);
    journal.begin("admitted").fail(new RejectionError(rejection));
    this.publish(uid, rejectedStatus(pod, rejection, this.deps.clock.now().wall));
  }

  /** Stops pods so that a critical one has room; they stay there, ended, for their controllers to see. */
  private preempt(victims: readonly Pod[], shortOf: string): void {
    const message = "Preempted in order to admit critical pod";
    const disruption = "Pod was preempted by Kubelet to accommodate a critical pod.";
    for (const victim of victims) {
      this.deps.counted?.preempted(shortOf);
      this.deps.journal.of(podIdentity(victim)).event("Warning", "Preempting", message);
      const failure = { reason: "Preempting", message, disruption, mayEndWell: true };
      this.workers.get(podIdentity(victim).uid)?.evict(failure);
    }
  }

  private resizeVerdict(worker: PodWorker, asked: Pod): ResizeVerdict {
    const others = [...this.workers.values()].filter((other) => other !== worker);
    const pod = { desired: asked, allocated: worker.allocated };
    const message =
      swapResizeProblem(asked, worker.allocated, this.deps.execute.node.limits()) ??
      this.deps.resizeProblem?.(asked, worker.allocated);
    if (message !== undefined) {
      this.resizes.delete(worker.identity.uid);
      return { reason: "Infeasible", message };
    }
    const undecided = this.queue.undecided().map((each) => ({ desired: each, allocated: each }));
    const verdict = this.resizes.verdict(pod, [...allocatedPods(others), ...undecided], this.options.node());
    if (verdict !== undefined && isCriticalPod(asked)) this.preemptFor(asked, others);
    return verdict;
  }

  /** A critical pod that grows preempts others as one that is added does, as in Kubernetes; it is resized when they ended. */
  private preemptFor(asked: Pod, others: readonly PodWorker[]): void {
    const load = { ...nodeLoad(others, this.unread), undecided: this.queue.undecided() };
    const admission = admissionVerdict(asked, load, this.options.node());
    if (admission.kind === "waits") this.preempt(admission.victims ?? [], admission.shortOf ?? "");
  }

  private launch(pod: Pod, options: Pick<WorkerOptions, "orphan" | "known" | "isAdopted" | "admitted">): void {
    const { execute, observer, probes, clock, log, late, measured, journal } = this.deps;
    const identity = podIdentity(pod);
    const worker: PodWorker = new PodWorker(
      pod,
      {
        execute,
        observer,
        probes,
        clock,
        log,
        late,
        tracer: journal.tracer,
        ...(measured && { measured }),
        journal: journal.of(identity),
        slot: new StartSlot(this.lane, { critical: isNodeCriticalPod(pod) }),
        resizeVerdict: (asked) => this.resizeVerdict(worker, asked),
        readmit: (of) => this.allocations.readmit(of),
        adopt: (of) => this.allocations.adopt(of, { signal: this.signal }),
        publish: (of, status) => this.publish(of, status),
        onPhase: (changed) => this.phaseChanged(changed),
        onKilled: (killed) => this.killed(killed),
        onFailed: () => {
          if (this.unread.has(identity.uid)) this.queue.review();
        },
      },
      {
        crashLimits: this.options.crashLimits,
        deadLimits: () => this.options.deadLimits?.current ?? DEFAULT_DEAD_LIMITS,
        ...options,
      },
    );
    this.workers.set(identity.uid, worker);
    const run = worker.run(this.signal).finally(() => this.runs.delete(run));
    this.runs.add(run);
  }

  private phaseChanged(worker: PodWorker): void {
    const { uid } = worker.identity;
    if (this.unread.delete(uid)) {
      this.queue.review();
      this.wakeWaiting();
    }
    if (worker.life.phase === "stopped") {
      this.releaseUsers(worker.pod);
      this.statuses.notify(uid);
    }
    if (worker.life.phase !== "gone") return;
    this.workers.delete(uid);
    this.inRuntime?.delete(uid);
    if (!this.queue.has(uid)) this.drop(uid);
    this.statuses.notify(uid);
    this.queue.review();
  }

  /** Nothing of the pod runs or will run again: its room is free, also while its object or its volumes stay. */
  private killed({ identity }: PodWorker): void {
    this.resizes.delete(identity.uid);
    void this.allocations.release(identity.uid);
    this.queue.review();
    this.wakeWaiting();
  }

  /** Releases the user namespace of a pod that has no volumes mounted any more, also while its object stays. */
  private releaseUsers(pod: Pod): void {
    const { uid } = podIdentity(pod);
    if (pod.spec.hostUsers !== false) return;
    this.deps.execute.users.release(uid).catch((error: unknown) => {
      this.deps.log.warn("Failed to release user namespace", { podUID: uid, error: messageOf(error) });
    });
  }

  /**
   * Releases, once after the start, allocations of pods that were removed while no agent ran, or that were killed or
   * rejected before it was known what they have; not while a source is incomplete: an unreadable manifest, or one that is
   * still being read, may be theirs.
   */
  private releaseOthers(): void {
    const { desired } = this.deps;
    if (this.hasReleasedOthers || this.inRuntime === undefined || !desired.isComplete) return;
    this.hasReleasedOthers = true;
    if (this.allocations.isEmpty) return;
    const isKnown = (uid: string): boolean => {
      const worker = this.workers.get(uid);
      return worker === undefined ? this.queue.has(uid) || this.isInRuntime(uid) : !worker.life.isKilled;
    };
    this.allocations.releaseOthers(isKnown).catch((error: unknown) => {
      // The next list, or the next change of a source, tries again.
      this.hasReleasedOthers = false;
      this.deps.log.warn("Failed to release allocations of removed pods", { error: messageOf(error) });
    });
  }

  /** The worker that this pod has to wait for: of the same UID, or an earlier version of the same static pod. */
  private holderOf(pod: Pod): PodWorker | undefined {
    const { uid, name, namespace } = podIdentity(pod);
    const own = this.workers.get(uid);
    if (own !== undefined || !isStaticPod(pod)) return own;
    this.orphans.stopEarlierVersions(pod);
    return [...this.workers.values()].find(
      ({ identity, pod: other }) => identity.name === name && identity.namespace === namespace && isStaticPod(other),
    );
  }

  private stopOrphan(pod: Pod): void {
    const { uid, name, namespace } = podIdentity(pod);
    this.deps.log.info("Stopping orphaned pod", { pod: name, namespace, podUID: uid });
    this.deps.counted?.orphaned();
    this.launch(pod, { orphan: true });
  }

  private publish(uid: string, status: PodStatus): void {
    this.statuses.publish(uid, status);
    if (!this.unread.delete(uid)) return;
    this.queue.review();
    // Until now it counted for what it asks for, which may be more than it was allocated.
    this.wakeWaiting();
  }

  /** Wakes the pods whose resize waits for room. */
  private wakeWaiting(): void {
    for (const worker of this.workers.values()) if (worker.awaitsRoom) worker.wake();
  }

  private drop(uid: string): void {
    this.statuses.delete(uid);
    this.deps.observer.evict(uid);
    this.deps.journal.evict(uid);
  }
}
