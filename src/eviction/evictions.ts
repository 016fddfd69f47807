import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { orAborted } from "../lib/or-aborted.ts";
import type { Pod } from "../model/generated/types.ts";
import type { EvictionReport } from "../model/node-pressure.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { PodIdentity } from "../model/step.ts";
import { EVICTED } from "./message.ts";

/** How a pod is evicted. */
export interface EvictionRequest {
  readonly message: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly graceSeconds: number;
  /** The signal or the limit that was exceeded; counted by it. */
  readonly signal: string;
  /** The message of the condition DisruptionTarget; absent if the pod exceeded its own limits. */
  readonly disruption?: string;
  /** True if its terminated containers are removed too, as their writable layers and logs are what is missing. */
  readonly isForDisk?: boolean;
}

/** How a pod fails, as its worker takes it. */
export interface PodFailure {
  readonly reason: string;
  readonly message: string;
  readonly disruption?: string;
}

export interface EvictionsDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** The pods of which something runs and that may still be evicted. */
  candidates(): readonly Pod[];
  /** Pods whose eviction began and has not ended, also if an earlier agent began it. */
  ending(): readonly { readonly uid: string; readonly graceSeconds: number }[];
  /** Stops a pod as Failed. */
  stop(uid: string, failure: PodFailure, graceSeconds: number): void;
  /** True if nothing of the pod runs any more. */
  isFinished(uid: string): boolean;
  /** Removes what the runtime has of a pod of which nothing runs any more. */
  discard(uid: string): Promise<void>;
  event(
    pod: PodIdentity,
    event: { reason: string; message: string; annotations: EvictionRequest["annotations"] },
  ): void;
  counted(signal: string): void;
}

/** How long the end of an evicted pod is waited for beyond its grace period, and how often it is checked. */
const END_MS = 30_000;
const POLL_MS = 50;
/** Evictions kept for `explain --node`. */
const KEPT = 20;

/** Evicts pods: event, failure, metric, and the wait for their end. */
export class Evictions {
  /** The last ones, oldest first. */
  recent: readonly EvictionReport[] = [];
  /** UIDs of pods that have not ended and whose end was waited for: each is waited for once. */
  private readonly awaited = new Set<string>();
  /** Until when the end of pods is waited for that are being evicted, by UID, in monotonic milliseconds. */
  private readonly deadlines = new Map<string, number>();

  constructor(private readonly deps: EvictionsDeps) {}

  /** The pods that may be evicted: one that was evicted and has not ended is not evicted again. */
  candidates(): readonly Pod[] {
    const isEnding = (uid: string): boolean => this.awaited.has(uid) && !this.deps.isFinished(uid);
    return this.deps.candidates().filter((pod) => !isEnding(podIdentity(pod).uid));
  }

  /** Evicts a pod, and waits until nothing of it runs, or for 30 s after its grace period. */
  async evict(pod: Pod, request: EvictionRequest, { signal }: Abortable): Promise<void> {
    const { clock, log } = this.deps;
    const identity = podIdentity(pod);
    const { message, annotations, graceSeconds, disruption, signal: by } = request;
    const { name, namespace, uid } = identity;
    log.info("Evicting pod", { pod: name, namespace, podUID: uid, signal: by, graceSeconds, message });
    this.deps.event(identity, { reason: EVICTED, message, annotations });
    const failure = { reason: EVICTED, message, ...(disruption !== undefined && { disruption }) };
    this.awaited.add(uid);
    this.deps.stop(uid, failure, graceSeconds);
    this.deps.counted(by);
    this.recent = [...this.recent, { at: clock.now().wall, pod: identity, signal: by, message }].slice(-KEPT);
    if (!(await this.hasEnded({ uid, graceSeconds }, signal))) return;
    if (request.isForDisk === true) await this.discard(uid, signal);
  }

  /** Shortens the grace period of a pod that is being evicted; what it fails with stays as it is. */
  hurry({ uid, message }: { readonly uid: string; readonly message: string }, graceSeconds: number): void {
    const before = this.deadlines.get(uid);
    if (before === undefined) return;
    this.deadlines.set(uid, Math.min(before, this.deadlineOf(graceSeconds)));
    this.deps.stop(uid, { reason: EVICTED, message }, graceSeconds);
  }

  /**
   * Waits for the end of pods that an earlier agent began to evict; true if there were any: another one is evicted only
   * if what they free does not suffice.
   */
  async endInherited({ signal }: Abortable): Promise<boolean> {
    const ending = this.deps.ending();
    const isEnding = (uid: string): boolean => !this.deps.isFinished(uid) || ending.some((pod) => pod.uid === uid);
    for (const uid of this.awaited) if (!isEnding(uid)) this.awaited.delete(uid);
    const inherited = ending.filter(({ uid }) => !this.awaited.has(uid));
    for (const { uid } of inherited) this.awaited.add(uid);
    await Promise.all(inherited.map((pod) => this.hasEnded(pod, signal)));
    return inherited.length > 0;
  }

  /** True once nothing of the pod runs, false 30 s after its grace period. */
  private async hasEnded(
    { uid, graceSeconds }: { readonly uid: string; readonly graceSeconds: number },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { clock, log } = this.deps;
    this.deadlines.set(uid, this.deadlineOf(graceSeconds));
    try {
      while (!this.deps.isFinished(uid)) {
        if (clock.now().mono >= (this.deadlines.get(uid) ?? 0)) {
          log.warn("Timed out waiting for evicted pod to end", { podUID: uid });
          return false;
        }
        await clock.sleep(POLL_MS, { signal });
      }
      return true;
    } finally {
      this.deadlines.delete(uid);
    }
  }

  private deadlineOf(graceSeconds: number): number {
    return this.deps.clock.now().mono + (Number.isFinite(graceSeconds) ? graceSeconds * 1000 : 0) + END_MS;
  }

  /** Without it the next measurement would find the disk as full as before, and another pod would be evicted. */
  private async discard(uid: string, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    try {
      await withScope([signal], { clock, ms: END_MS }, (limited) => orAborted(this.deps.discard(uid), limited));
    } catch (error) {
      signal.throwIfAborted();
      log.warn("Failed to remove containers of evicted pod", { podUID: uid, error: messageOf(error) });
    }
  }
}
