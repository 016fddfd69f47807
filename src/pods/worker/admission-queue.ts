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
  /** Decides about a pod by what the node has now. `isAdopted`: it was admitted by an earlier run of the agent. */
  verdict(pod: DesiredPod): AdmissionVerdict & { readonly isAdopted?: boolean };
  /** Ends these pods so that another has room; `shortOf` is the reason that it would be rejected for. */
  preempt(victims: readonly Pod[], shortOf: string): void;
  admitted(pod: DesiredPod): void;
  rejected(pod: Pod, rejection: Rejection): void;
}

/**
 * Pods that were added and have no worker yet. One is decided at a time, in the order of their creation, so that each
 * is decided on what those before it got:
 *
 *     waiting ──► verdict ──► allocations, persisted ──► admitted
 *        ▲           │ waits          │ rejected
 *        └───────────┴────────────────┴──────────────► rejected
 */
export class AdmissionQueue {
  private readonly waiting = new Set<string>();
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
        for (const uid of this.byCreation()) {
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

  private byCreation(): readonly string[] {
    const created = (uid: string): string => this.deps.desired.get(uid)?.pod.metadata.creationTimestamp ?? "";
    const all = [...this.waiting].map((uid) => ({ uid, at: created(uid) }));
    return all.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0)).map(({ uid }) => uid);
  }

  private decide(uid: string): "allocates" | undefined {
    if (!this.waiting.has(uid)) return undefined;
    const desired = this.deps.desired.get(uid);
    if (desired === undefined) {
      this.delete(uid);
      return undefined;
    }
    const verdict = this.deps.verdict(desired);
    switch (verdict.kind) {
      case "waits":
        this.note(desired, verdict.why);
        this.deps.preempt(verdict.victims ?? [], verdict.shortOf ?? "");
        return undefined;
      case "rejected":
        this.delete(uid);
        this.deps.rejected(desired.pod, verdict.rejection);
        return undefined;
      case "admitted":
        if (!this.deps.allocations.isEmpty && verdict.isAdopted !== true) return "allocates";
        this.delete(uid);
        this.deps.admitted(desired);
        return undefined;
    }
  }

  private async allocate(uid: string): Promise<void> {
    const { desired, allocations, signal } = this.deps;
    const asked = desired.get(uid);
    if (asked === undefined) return;
    const rejection = await allocations.allocate(asked.pod, { signal });
    const current = desired.get(uid);
    if (!this.waiting.has(uid) || current === undefined) {
      await allocations.release(uid);
      return;
    }
    this.delete(uid);
    if (rejection === undefined) this.deps.admitted(current);
    else this.deps.rejected(current.pod, rejection);
  }

  /** Tells the journal once what the pod waits for. */
  private note({ uid, pod }: DesiredPod, why: string): void {
    if (this.reasons.get(uid) === why) return;
    this.reasons.set(uid, why);
    this.deps.journal.of(podIdentity(pod)).note("waiting", why);
  }
}
