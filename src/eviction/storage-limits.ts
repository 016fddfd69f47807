import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Pod } from "../model/generated/types.ts";
import { isCriticalPod, podIdentity } from "../model/pod-facts.ts";
import type { PodStorage } from "../model/pod-storage.ts";
import type { Evictions } from "./evictions.ts";
import { type ExceededLimit, exceededLimit, hasStorageLimit } from "./local-limits.ts";
import type { Layout } from "./signals.ts";

export interface StorageLimitsDeps {
  readonly clock: Clock;
  readonly evictions: Evictions;
  /** Measures what pods keep on disk, by UID. */
  storage(pods: readonly Pod[], options: Abortable): Promise<ReadonlyMap<string, PodStorage>>;
  layout(): Layout;
  /** False if local storage is not isolated: then nothing is checked. */
  isEnabled(): boolean;
}

/**
 * Interval of checks in milliseconds, as in Kubernetes; longer where measuring takes long, so that it is a 20th of it, but
 * never so long that a limit means nothing: on a busy machine the time is not all spent on measuring.
 */
const INTERVAL_MS = 10_000;
const SHARE = 20;
const LONGEST_MS = 60_000;
/** Grace period in seconds, as in Kubernetes. */
const GRACE_SECONDS = 1;

/** Evicts pods that exceed their limits on local storage. Only pods that have such limits are measured. */
export class StorageLimits {
  private checking: Promise<boolean> | undefined;

  constructor(private readonly deps: StorageLimitsDeps) {}

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    for (;;) {
      const began = clock.now().mono;
      await this.check({ signal });
      const tookMs = clock.now().mono - began;
      const pauseMs = Math.min(LONGEST_MS, tookMs * (SHARE - 1));
      await clock.sleep(Math.max(INTERVAL_MS, pauseMs), { signal });
    }
  }

  /** Measures and evicts; true if a pod was evicted. A check that is under way is shared. */
  check({ signal }: Abortable): Promise<boolean> {
    this.checking ??= this.checkNow(signal).finally(() => {
      this.checking = undefined;
    });
    return this.checking;
  }

  private async checkNow(signal: AbortSignal): Promise<boolean> {
    const { evictions, isEnabled } = this.deps;
    if (!isEnabled()) return false;
    const limited = evictions.candidates().filter((pod) => hasStorageLimit(pod) && !isCriticalPod(pod));
    if (limited.length === 0) return false;
    const storage = await this.deps.storage(limited, { signal });
    const layout = this.deps.layout();
    // A pod may have been evicted, or have ended, while it was measured.
    const left = new Set(evictions.candidates().map((pod) => podIdentity(pod).uid));
    const stillThere = limited.filter((pod) => left.has(podIdentity(pod).uid));
    const over = stillThere.flatMap((pod): readonly (readonly [Pod, ExceededLimit])[] => {
      const measured = storage.get(podIdentity(pod).uid);
      const exceeded = measured && exceededLimit(pod, measured, { layout });
      return exceeded === undefined ? [] : [[pod, exceeded]];
    });
    await Promise.all(
      over.map(([pod, { message, signal: by }]) =>
        evictions.evict(
          pod,
          { message, annotations: {}, graceSeconds: GRACE_SECONDS, signal: by, isForDisk: true },
          { signal },
        ),
      ),
    );
    return over.length > 0;
  }
}
