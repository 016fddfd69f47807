import type { Abortable } from "../lib/abort.ts";
import { AbortScope, isAborted } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { Wakes } from "../lib/wakes.ts";

/** The ResourceSlices of this node at the API server. */
export interface SliceApi {
  /** The drivers that have slices of this node; undefined if the Node object is not known yet. */
  drivers(options: Abortable): Promise<readonly string[] | undefined>;
  /** Deletes the slices that a driver published for this node. */
  deleteOf(driver: string, options: Abortable): Promise<void>;
}

export interface SliceCleanerDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly api: SliceApi;
  isUsable(driver: string): boolean;
}

/** How long a driver may be unavailable before its ResourceSlices are deleted, in milliseconds, as in Kubernetes. */
export const WIPE_AFTER_MS = 30_000;
/**
 * Unavailable drivers that are remembered by their names. Of more, those that have slices are found by a list: a plugin
 * that registers under one new name after another must cost neither memory nor calls for each of them.
 */
const MOST_PENDING = 20;
const RETRY = { initialMs: 1000, maxMs: 300_000, jitter: 0.2 };

/**
 * Deletes the ResourceSlices of drivers that are gone: no pod should be scheduled for devices that nobody can prepare.
 * At start every driver has the same time to register, so that a restart of the agent leaves the slices alone.
 */
export class SliceCleaner {
  private readonly pending = new Map<string, AbortScope>();
  /** A driver became unusable that could not be remembered. */
  private readonly overflow: Wakes;

  constructor(
    private readonly deps: SliceCleanerDeps,
    private readonly signal: AbortSignal,
  ) {
    this.overflow = new Wakes(deps.clock);
  }

  /** A driver became usable or unusable. */
  changed(driver: string, isUsable: boolean): void {
    if (isUsable) {
      this.pending.get(driver)?.abort();
      this.pending.delete(driver);
    } else if (this.pending.has(driver) || this.pending.size < MOST_PENDING) this.wipeAfter(driver, WIPE_AFTER_MS);
    else this.overflow.wake();
  }

  /** Looks for slices of drivers that did not come back after the start, and of those that were too many to remember. */
  async run(signal: AbortSignal): Promise<void> {
    await this.deps.clock.sleep(WIPE_AFTER_MS, { signal });
    await this.wipeUnusable(0, signal);
    while (!signal.aborted) {
      await this.overflow.sleep(undefined, signal);
      await this.wipeUnusable(WIPE_AFTER_MS, signal);
      await this.deps.clock.sleep(WIPE_AFTER_MS, { signal });
    }
  }

  private async wipeUnusable(afterMs: number, signal: AbortSignal): Promise<void> {
    await this.persist(signal, async () => {
      const drivers = await this.deps.api.drivers({ signal });
      for (const driver of drivers ?? []) if (!this.deps.isUsable(driver)) this.wipeAfter(driver, afterMs);
      return drivers !== undefined;
    });
  }

  private wipeAfter(driver: string, ms: number): void {
    if (this.pending.has(driver)) return;
    const scope = new AbortScope([this.signal]);
    this.pending.set(driver, scope);
    void this.wipeLater(driver, { scope, ms });
  }

  private async wipeLater(driver: string, { scope, ms }: { scope: AbortScope; ms: number }): Promise<void> {
    try {
      if (ms > 0) await this.deps.clock.sleep(ms, scope);
    } catch {
      return scope.dispose();
    }
    await this.wipe(driver, scope);
  }

  private async wipe(driver: string, scope: AbortScope): Promise<void> {
    await this.persist(scope.signal, async () => {
      await this.deps.api.deleteOf(driver, { signal: scope.signal });
      this.deps.log.info("Deleted ResourceSlices of unavailable driver", { driver });
      return true;
    });
    scope.dispose();
    if (this.pending.get(driver) === scope) this.pending.delete(driver);
  }

  /** Repeats an attempt with back-off until it is done or the signal aborts. */
  private async persist(signal: AbortSignal, attempt: () => Promise<boolean>): Promise<void> {
    const backoff = new Backoff(RETRY);
    let lastError = "";
    while (!signal.aborted) {
      try {
        if (await attempt()) return;
      } catch (error) {
        if (isAborted(error, signal)) return;
        if (messageOf(error) !== lastError)
          this.deps.log.warn("Failed to delete ResourceSlices", { error: messageOf(error) });
        lastError = messageOf(error);
      }
      await this.deps.clock.sleep(backoff.next(this.deps.clock.now()), { signal }).catch(() => undefined);
    }
  }
}
