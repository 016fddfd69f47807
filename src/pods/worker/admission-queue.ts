import { AbortScope } from "../../lib/abort.ts";
import { Backoff } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { Pod } from "../../model/generated/types.ts";
import { podIdentity } from "../../model/pod-facts.ts";
import type { PodAllocations } from "../admission/allocations.ts";
import type { Rejection } from "../admission/facts.ts";
import type { AdmissionVerdict } from "../admission/verdict.ts";
import type { DesiredPod, DesiredPods } from "../desired.ts";
import type { Journal, OpenStep } from "../journal.ts";

/** When what failed is decided again. */
const RETRY = { initialMs: 1000, maxMs: 30_000 };

interface QueueDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "error">;
  readonly desired: Pick<DesiredPods, "get">;
  readonly journal: Journal;
  readonly allocations: PodAllocations;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
  /** True for a pod that an earlier run of the agent admitted. */
  isKnown(uid: string): boolean;
  /** Decides about a pod by what the node has now. `isAdopted`: it was admitted by an earlier run of the agent. */
  verdict(pod: DesiredPod): AdmissionVerdict & { readonly isAdopted?: boolean };
  /** Ends these pods so that another has room; `shortOf` is the reason that it would be rejected for. */
  preempt(victims: readonly Pod[], shortOf: string): void;
  /** `decided` is the version that the node has room for; undefined if an earlier run admitted the pod. */
  admitted(pod: DesiredPod, decided: Pod | undefined): void;
  rejected(pod: Pod, rejection: Rejection): void;
}

/** A pod that is about to get its allocations. */
interface Allocating {
  readonly pod: Pod;
  readonly scope: AbortScope;
}

/**
 * Pods that were added and have no worker yet. One is decided at a time, those of an earlier run first, then in the order
 * of their creation, so that each is decided on what those before it have reserved; what an allocator waits for delays
 * nobody else:
 *
 *     waiting ──► verdict ──► reserved ──► allocations, persisted ──► admitted
 *        ▲           │ waits      │                │
 *        └───────────┴────────────┴────────────────┴──────────────► rejected
 */
export class AdmissionQueue {
  private readonly waiting = new Set<string>();
  private readonly allocating = new Map<string, Allocating>();
  /**
   * Pods whose turn it is, and that wait for something else than room on the node: nobody after them takes theirs. In the
   * order in which they are decided.
   */
  private readonly keeping = new Map<string, Pod>();
  /** What each pod waits for, as its journal was told. */
  private readonly reasons = new Map<string, string>();
  /** Nothing is decided before the runtime was listed once: what it already has might be the same pod. */
  private isOpen = false;
  private readonly unanswered = new Map<string, OpenStep>();
  private isDeciding = false;
  private isDue = false;
  private readonly backoff = new Backoff(RETRY);
  private isRetrying = false;

  constructor(private readonly deps: QueueDeps) {}

  /** True for a pod that has been neither admitted nor rejected. */
  has(uid: string): boolean {
    return this.waiting.has(uid);
  }

  /** Pods whose resources are reserved, and that may still be rejected; of those that keep their room, all before `uid`. */
  undecided(uid?: string): readonly Pod[] {
    const undecided = [...this.allocating.values()].map(({ pod }) => pod);
    for (const [other, pod] of this.keeping) {
      if (other === uid) break;
      undecided.push(pod);
    }
    return undecided;
  }

  /** Takes a pod in; `review` decides. */
  add({ uid, pod }: DesiredPod): void {
    this.waiting.add(uid);
    if (this.isOpen) return;
    const journal = this.deps.journal.of(podIdentity(pod));
    this.unanswered.set(uid, journal.begin("waiting", { detail: "for the runtime to answer" }));
  }

  /** The pod is no longer wanted. */
  delete(uid: string): void {
    this.waiting.delete(uid);
    this.reasons.delete(uid);
    this.keeping.delete(uid);
    this.allocating.get(uid)?.scope.abort();
  }

  /** Begins to decide; safe to repeat. */
  open(): void {
    this.isOpen = true;
    for (const step of this.unanswered.values()) step.done();
    this.unanswered.clear();
    this.review();
  }

  /** Decides about every waiting pod anew. Call when one was added, has stopped or became known. */
  review(): void {
    this.isDue = true;
    if (this.isOpen && !this.isDeciding) void this.decideAll();
  }

  /** Without allocators it never awaits anything: a pod is admitted at once. Never rejects. */
  private async decideAll(): Promise<void> {
    const { allocations, signal, log } = this.deps;
    this.isDeciding = true;
    let hasFailed = false;
    try {
      if (!allocations.isEmpty) await allocations.restore();
      while (this.isDue && !signal.aborted) {
        this.isDue = false;
        for (const uid of this.inOrder()) {
          try {
            if (this.decide(uid) === "allocates") await this.allocate(uid);
          } catch (error) {
            if (signal.aborted) return;
            hasFailed = true;
            log.error("Failed to decide on the admission of a pod", error, { podUID: uid });
          }
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      hasFailed = true;
      log.error("Failed to restore allocations of pods", error);
    } finally {
      this.isDeciding = false;
    }
    if (hasFailed) this.retry();
    else this.backoff.reset();
  }

  /** Decides again after a while; until then each further review is a try as well. */
  private retry(): void {
    const { clock, signal } = this.deps;
    if (this.isRetrying) return;
    this.isRetrying = true;
    clock.sleep(this.backoff.next(clock.now()), { signal }).then(
      () => {
        this.isRetrying = false;
        this.review();
      },
      () => undefined,
    );
  }

  /** Those that an earlier run admitted come first, then those that keep their room: new ones are decided on what is left. */
  private inOrder(): readonly string[] {
    const { desired, isKnown } = this.deps;
    const turns = new Map([...this.keeping.keys()].map((uid, turn) => [uid, turn]));
    const all = [...this.waiting].map((uid) => ({
      uid,
      turn: isKnown(uid) ? -1 : (turns.get(uid) ?? turns.size),
      created: desired.get(uid)?.pod.metadata.creationTimestamp ?? "",
    }));
    return all
      .sort((a, b) => a.turn - b.turn || (a.created < b.created ? -1 : a.created > b.created ? 1 : 0))
      .map(({ uid }) => uid);
  }

  private decide(uid: string): "allocates" | undefined {
    if (!this.waiting.has(uid) || this.allocating.has(uid)) return undefined;
    const desired = this.deps.desired.get(uid);
    if (desired === undefined) {
      this.delete(uid);
      return undefined;
    }
    const verdict = this.deps.verdict(desired);
    if (verdict.kind === "waits" && verdict.keepsRoom === true) this.keeping.set(uid, desired.pod);
    else this.keeping.delete(uid);
    switch (verdict.kind) {
      case "waits":
        this.wait(desired, verdict);
        return undefined;
      case "rejected":
        this.reject(desired, this.rejectionOf(desired.pod, verdict));
        return undefined;
      case "admitted":
        if (!this.deps.allocations.isEmpty && verdict.isAdopted !== true) return "allocates";
        this.delete(uid);
        this.deps.admitted(desired, verdict.isAdopted === true ? undefined : desired.pod);
        return undefined;
    }
  }

  /** No pod ends for one that an allocator would reject even so, as in Kubernetes. */
  private wait(
    desired: DesiredPod,
    { why, victims = [], shortOf = "" }: AdmissionVerdict & { readonly kind: "waits" },
  ): void {
    const rejection = victims.length > 0 ? this.deps.allocations.problem(desired.pod) : undefined;
    if (rejection !== undefined) return this.reject(desired, rejection);
    this.note(desired, why);
    this.deps.preempt(victims, shortOf);
  }

  private reject({ uid, pod }: DesiredPod, rejection: Rejection): void {
    this.delete(uid);
    this.deps.rejected(pod, rejection);
  }

  /** The reason of an allocator comes before that of a shortage, as in Kubernetes. */
  private rejectionOf(
    pod: Pod,
    { rejection, isShortage }: AdmissionVerdict & { readonly kind: "rejected" },
  ): Rejection {
    return (isShortage === true ? this.deps.allocations.problem(pod) : undefined) ?? rejection;
  }

  /** Resolves when the pod's resources are reserved: the next pod is decided then. */
  private async allocate(uid: string): Promise<void> {
    const { desired, allocations, signal } = this.deps;
    const pod = desired.get(uid)?.pod;
    if (pod === undefined) return;
    const entry = { pod, scope: new AbortScope([signal]) };
    this.allocating.set(uid, entry);
    try {
      const { outcome } = await allocations.begin(pod, entry.scope);
      void this.settle(uid, outcome, entry);
    } catch (error) {
      this.end(uid, entry);
      throw error;
    }
  }

  /** Never rejects. */
  private async settle(uid: string, outcome: Promise<Rejection | undefined>, entry: Allocating): Promise<void> {
    const { desired, allocations, signal, log } = this.deps;
    try {
      const rejection = await outcome;
      const current = desired.get(uid);
      entry.scope.signal.throwIfAborted();
      if (current === undefined) await allocations.release(uid);
      this.waiting.delete(uid);
      this.reasons.delete(uid);
      if (current !== undefined && rejection === undefined) this.deps.admitted(current, entry.pod);
      else if (current !== undefined && rejection !== undefined) this.deps.rejected(current.pod, rejection);
    } catch (error) {
      if (signal.aborted) return;
      // It is no longer wanted, or came back as another pod with its UID.
      if (entry.scope.signal.aborted) await allocations.release(uid);
      else {
        log.error("Failed to decide on the admission of a pod", error, { podUID: uid });
        this.retry();
      }
    } finally {
      this.end(uid, entry);
    }
    this.review();
  }

  private end(uid: string, { scope }: Allocating): void {
    scope.dispose();
    this.allocating.delete(uid);
  }

  /** Tells the journal once what the pod waits for. */
  private note({ uid, pod }: DesiredPod, why: string): void {
    if (this.reasons.get(uid) === why) return;
    this.reasons.set(uid, why);
    this.deps.journal.of(podIdentity(pod)).note("waiting", why);
  }
}
