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

  constructor(private readonly deps: EvictionsDeps) {}

  candidates(): readonly Pod[] {
    return this.deps.candidates();
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
    this.deps.stop(uid, failure, graceSeconds);
    this.deps.counted(by);
    this.recent = [...this.recent, { at: clock.now().wall, pod: identity, signal: by, message }].slice(-KEPT);
    const until = clock.now().mono + (Number.isFinite(graceSeconds) ? graceSeconds * 1000 : 0) + END_MS;
    while (!this.deps.isFinished(uid)) {
      if (clock.now().mono >= until) {
        log.warn("Timed out waiting for evicted pod to end", { pod: name, namespace, podUID: uid });
        return;
      }
      await clock.sleep(POLL_MS, { signal });
    }
    if (request.isForDisk === true) await this.discard(uid, signal);
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
