import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { Lane } from "../../lib/lane.ts";
import { fixed, type Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import type { Pod, PodStatus } from "../../model/generated/types.ts";
import { CONFIG_SOURCE_ANNOTATION } from "../../model/labels.ts";
import { isNodeCriticalPod } from "../../model/pod-facts.ts";
import { unsupportedFields } from "../../model/pod-support.ts";
import type { ProbeKind } from "../../model/probe.ts";
import { qosClass } from "../../model/qos.ts";
import { type AdmissionNode, admit, type Rejection, resizeVerdict } from "../admission/admission.ts";
import { RejectionError, type Rejections } from "../admission/rejections.ts";
import type { DesiredChange, DesiredPod, DesiredPods } from "../desired.ts";
import type { ExecuteDeps } from "../execute/context.ts";
import type { Journal, OpenStep, PodJournal } from "../journal.ts";
import type { ListedPod, Observer } from "../observe/observe.ts";
import type { CrashLimits } from "../plan/crash-backoff.ts";
import { DEFAULT_DEAD_LIMITS, type DeadLimits } from "../plan/prune.ts";
import { isTerminalPhase } from "../status/derive.ts";
import type { PodProbes } from "./probes.ts";
import { StartSlot } from "./start-slot.ts";
import { PodWorker, type WorkerDeps } from "./worker.ts";

export interface PoolOptions {
  readonly maxConcurrentStarts: Live<number>;
  /** The node that pods have to fit on. */
  node(): AdmissionNode;
  readonly crashLimits: CrashLimits;
  /** How many ended containers are kept. */
  readonly deadLimits?: Live<DeadLimits>;
  /** Decides whether a pod that only the runtime knows is ours to stop. */
  ownsUnknown(pod: { annotations: Readonly<Record<string, string>> }): boolean;
}

export interface PoolDeps {
  readonly execute: ExecuteDeps;
  readonly observer: Pick<Observer, "read" | "evict">;
  readonly desired: DesiredPods;
  readonly probes: PodProbes;
  readonly journal: Journal;
  /** Refused pods, kept over restarts of the agent. */
  readonly rejections?: Rejections;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborts a while after the agent was told to stop. */
  readonly late: AbortSignal;
  /** Told how long workers took. */
  readonly measured?: WorkerDeps["measured"];
  /** Told of what is only counted. */
  readonly counted?: {
    orphaned(): void;
    /** A pod came back under its UID while its earlier life still ended. */
    restarted(pod: Pod): void;
    /** A pod was ended for a critical one, which was short of what this reason names. */
    preempted(reason: string): void;
  };
}

/**
 * One worker per UID, and one started UID per pod name: another version of a static pod waits until the one before it
 * is gone, and only the newest that still is wanted is started then.
 */
export class WorkerPool {
  private readonly workers = new Map<string, PodWorker>();
  private readonly statuses = new Map<string, PodStatus>();
  /** UIDs that wait for the end of the worker that has their name (or their own UID). */
  private readonly waiting = new Set<string>();
  private readonly runs = new Set<Promise<void>>();
  private readonly lane: Lane;
  private readonly listeners = new Set<(uid: string) => void>();
  /** What the runtime listed and nobody has looked after yet. */
  private unknown = new Map<string, ListedPod>();
  /** UIDs that the runtime had when it was listed last: they were admitted once, and are not asked again. */
  private inRuntime: ReadonlySet<string> = new Set();
  /** Nothing is started before the runtime was listed once: what it already has might be the same pod. */
  private isListed = false;
  private readonly unanswered = new Map<string, OpenStep>();

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
  }

  /** Takes over what a source changed. */
  apply(change: DesiredChange): void {
    for (const { uid } of change.removed) this.removed(uid);
    for (const pod of change.added) this.added(pod);
    for (const { uid, pod } of change.updated) this.workers.get(uid)?.update(pod);
    // One that waits for room may be asked to go meanwhile: then it needs none.
    if (change.updated.some(({ uid, pod }) => this.waiting.has(uid) && isEnding(pod))) this.startWaiting();
    this.stopUnknown();
  }

  /** A wake-up: carries no facts. */
  wake(uid: string): void {
    this.workers.get(uid)?.wake();
  }

  /** A probe of this pod decided anew. */
  probed(uid: string, kind: ProbeKind): void {
    this.workers.get(uid)?.probed(kind);
  }

  /** The runtime was listed, after a (re)connection or by the audit: everybody looks again, unknown pods are stopped. */
  listed(pods: ReadonlyMap<string, ListedPod>): void {
    this.unknown = new Map(pods);
    this.inRuntime = new Set(pods.keys());
    this.isListed = true;
    for (const step of this.unanswered.values()) step.done();
    this.unanswered.clear();
    for (const worker of this.workers.values()) worker.wake({ retry: true });
    this.stopUnknown();
    this.startWaiting();
  }

  /** True while pods wait for their turn to be started. */
  get hasWaiting(): boolean {
    return this.lane.waiting > 0;
  }

  /** True while a pod is being started, or waits for it. */
  get isStarting(): boolean {
    return this.lane.running > 0 || this.hasWaiting;
  }

  /** Every pod that has a worker, wanted or not. */
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
  onStatus(fn: (uid: string) => void, { signal }: Abortable): void {
    this.listeners.add(fn);
    signal.addEventListener("abort", () => void this.listeners.delete(fn), { once: true });
  }

  /** Resolves when every worker has put down its work; call after the signal was aborted. */
  async idle(): Promise<void> {
    while (this.runs.size > 0) await Promise.all(this.runs);
  }

  private removed(uid: string): void {
    this.waiting.delete(uid);
    this.deps.rejections?.delete(uid);
    const worker = this.workers.get(uid);
    if (worker !== undefined) return worker.remove({ keepLogs: false });
    this.drop(uid);
  }

  private added(desired: DesiredPod): void {
    const { uid, pod } = desired;
    const journal = this.deps.journal.of({
      uid,
      name: pod.metadata.name ?? "",
      namespace: pod.metadata.namespace ?? "",
    });
    if (!this.isListed) {
      this.waiting.add(uid);
      this.unanswered.set(uid, journal.begin("waiting", { detail: "for the runtime to answer" }));
      return;
    }
    const holder = this.holderOf(pod, uid);
    if (holder !== undefined) {
      this.waiting.add(uid);
      // The same UID comes back while its worker still ends: the logs tell the next one how often it was started.
      if (holder.identity.uid === uid) {
        holder.remove({ keepLogs: true });
        this.deps.counted?.restarted(pod);
      }
      journal.note("waiting", `for the end of the earlier ${holder.identity.name} (${holder.identity.uid})`);
      return;
    }
    this.start(desired);
  }

  /** True when nothing of the pod runs or is mounted any more, or it never got that far. */
  isFinished(uid: string): boolean {
    const phase = this.workers.get(uid)?.phase;
    return phase === undefined ? !this.waiting.has(uid) : phase === "stopped" || phase === "gone";
  }

  private start({ uid, pod, source }: DesiredPod): void {
    const journal = this.deps.journal.of({
      uid,
      name: pod.metadata.name ?? "",
      namespace: pod.metadata.namespace ?? "",
    });
    // What is over, or asked to go, needs no room any more: its worker only ends it. What runs was admitted before.
    if (!isEnding(pod) && !this.inRuntime.has(uid) && !this.mayStart(pod, journal)) return;
    journal.note("admitted", `from ${source}`);
    for (const field of unsupportedFields(pod).warned) journal.event("Warning", "FieldNotSupported", field);
    // Of an earlier life under the same UID: a final phase of then is not one of now.
    this.statuses.delete(uid);
    const known = source === "api" && pod.status?.startTime !== undefined ? { known: pod.status } : {};
    this.launch(pod, known);
  }

  /** Admission. A pod that only has to wait for others to go does so, and is looked at again when one has ended. */
  private mayStart(pod: Pod, journal: PodJournal): boolean {
    const { uid = "" } = pod.metadata;
    const { rejections } = this.deps;
    const node = this.options.node();
    const known = rejections?.get(uid, lasting(node));
    if (known !== undefined) return this.reject(pod, known, journal);
    const others = this.active(["syncing", "stopping"]);
    const outcome = admit(pod, { others, node });
    if (outcome.kind === "admitted") {
      rejections?.delete(uid);
      return true;
    }
    const { message } = outcome.rejection;
    if (outcome.kind === "preempts" || admit(pod, { others: this.active(["syncing"]), node }).kind === "admitted") {
      for (const victim of outcome.kind === "preempts" ? outcome.victims : []) {
        this.deps.counted?.preempted(outcome.rejection.reason);
        this.preempt(victim);
      }
      this.waiting.add(uid);
      journal.note("waiting", `for others to end: ${message}`);
      return false;
    }
    rejections?.add(uid, outcome.rejection, lasting(node));
    journal.event("Warning", outcome.rejection.reason, message);
    return this.reject(pod, outcome.rejection, journal);
  }

  private reject(pod: Pod, { reason, message }: Rejection, journal: PodJournal): false {
    journal.begin("admitted").fail(new RejectionError({ reason, message }));
    const status = { phase: "Failed", reason, message: `Pod was rejected: ${message}`, qosClass: qosClass(pod) };
    this.publish(pod.metadata.uid ?? "", status);
    return false;
  }

  /** Ends a pod so that a critical one has room; it stays Failed, for its controller to see. */
  private preempt(victim: Pod): void {
    const { uid = "", name = "", namespace = "" } = victim.metadata;
    const message = "Preempted in order to admit critical pod";
    this.deps.journal.of({ uid, name, namespace }).event("Warning", "Preempting", message);
    const disruption = "Pod was preempted by Kubelet to accommodate a critical pod.";
    this.workers.get(uid)?.evict({ reason: "Preempting", message, disruption });
  }

  private active(phases: readonly PodWorker["phase"][]): Pod[] {
    return [...this.workers.values()]
      .filter(({ phase, willStop }) => {
        return phases.includes(willStop && phase === "syncing" ? "stopping" : phase);
      })
      .map(({ allocated }) => allocated);
  }

  /** What others than this pod count for. */
  private others(uid: string): Pod[] {
    return [...this.workers.values()]
      .filter(({ phase, identity }) => (phase === "syncing" || phase === "stopping") && identity.uid !== uid)
      .map(({ allocated }) => allocated);
  }

  private launch(pod: Pod, options: { orphan?: boolean; known?: PodStatus }): void {
    const { execute, observer, probes, clock, log, late, measured } = this.deps;
    const { uid = "", name = "", namespace = "" } = pod.metadata;
    const worker = new PodWorker(
      pod,
      {
        ...{ execute, observer, probes, clock, log, late, ...(measured && { measured }) },
        journal: this.deps.journal.of({ uid, name, namespace }),
        slot: new StartSlot(this.lane, { critical: isNodeCriticalPod(pod) }),
        resizeVerdict: (asked) => resizeVerdict(asked, { others: this.others(uid), node: this.options.node() }),
        publish: (of, status) => this.publish(of, status),
        onPhase: (changed) => this.phaseChanged(changed),
      },
      {
        crashLimits: this.options.crashLimits,
        deadLimits: () => this.options.deadLimits?.current ?? DEFAULT_DEAD_LIMITS,
        ...options,
      },
    );
    this.workers.set(uid, worker);
    if (pod.metadata.deletionTimestamp !== undefined) worker.terminate();
    const run = worker.run(this.signal).finally(() => this.runs.delete(run));
    this.runs.add(run);
  }

  private phaseChanged(worker: PodWorker): void {
    if (worker.phase === "stopped") {
      this.tell(worker.identity.uid);
      this.startWaiting();
      for (const other of this.workers.values()) if (other.awaitsRoom) other.wake();
    }
    if (worker.phase !== "gone") return;
    const { uid } = worker.identity;
    this.workers.delete(uid);
    if (!this.waiting.has(uid)) this.drop(uid);
    this.tell(uid);
    this.startWaiting();
  }

  private startWaiting(): void {
    for (const uid of [...this.waiting]) {
      const desired = this.deps.desired.get(uid);
      if (desired !== undefined && this.holderOf(desired.pod, uid) !== undefined) continue;
      this.waiting.delete(uid);
      if (desired !== undefined) this.start(desired);
    }
  }

  /**
   * The worker that keeps this pod from being started: of the same UID, or of the same name. An earlier version that
   * only the runtime knows (its manifest changed while no agent ran) gets one now, which stops it.
   */
  private holderOf(pod: Pod, uid: string): PodWorker | undefined {
    const own = this.workers.get(uid);
    if (own !== undefined) return own;
    const isNamesake = (other: { name: string; namespace: string }): boolean =>
      other.name === pod.metadata.name && other.namespace === pod.metadata.namespace;
    for (const [other, listed] of this.unknown) {
      if (other !== uid && isNamesake(listed) && this.options.ownsUnknown(listed)) this.stopOrphan(other, listed);
    }
    for (const worker of this.workers.values()) if (isNamesake(worker.identity)) return worker;
    return undefined;
  }

  /**
   * Stops pods that only the runtime knows, once every source has said what it wants. Pods of a source that cannot read
   * all it has are left alone: the unreadable manifest may well be theirs.
   */
  private stopUnknown(): void {
    const { desired } = this.deps;
    if (!desired.allSourcesReady) return;
    for (const [uid, listed] of this.unknown) {
      if (this.workers.has(uid) || desired.get(uid) !== undefined) {
        this.unknown.delete(uid);
        continue;
      }
      const source = listed.annotations[CONFIG_SOURCE_ANNOTATION] ?? "";
      if (this.options.ownsUnknown(listed) && !desired.isIncomplete(source)) this.stopOrphan(uid, listed);
    }
  }

  private stopOrphan(uid: string, { name, namespace }: ListedPod): void {
    this.unknown.delete(uid);
    if (this.workers.has(uid)) return;
    this.deps.log.info("stopping a pod that no source wants", { pod: name, namespace, uid });
    this.deps.counted?.orphaned();
    this.launch({ metadata: { uid, name, namespace }, spec: { containers: [] } }, { orphan: true });
  }

  private publish(uid: string, status: PodStatus): void {
    this.statuses.set(uid, status);
    this.tell(uid);
  }

  private tell(uid: string): void {
    for (const listener of [...this.listeners]) listener(uid);
  }

  private drop(uid: string): void {
    this.statuses.delete(uid);
    this.deps.observer.evict(uid);
    this.deps.journal.forget(uid);
  }
}

/** True for a pod that the API server was asked to delete, or whose phase is final there. */
function isEnding({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined || isTerminalPhase(status?.phase);
}

/** What of a node is known at once and does not come and go: what a kept decision is compared by. */
function lasting(node: AdmissionNode): unknown {
  const room = Object.entries(node.allocatable).filter(([name]) => name !== "ephemeral-storage");
  return { ...node, hasStrictGroups: undefined, allocatable: Object.fromEntries(room) };
}

/** Pool options that never change, for tests. */
export function fixedPoolOptions(options: {
  maxConcurrentStarts: number;
  node: AdmissionNode;
  crashLimits: CrashLimits;
}): PoolOptions {
  return {
    maxConcurrentStarts: fixed(options.maxConcurrentStarts),
    node: () => options.node,
    crashLimits: options.crashLimits,
    ownsUnknown: () => true,
  };
}
