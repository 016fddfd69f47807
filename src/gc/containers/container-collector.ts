import { type Abortable, isAborted, withScope } from "../../lib/abort.ts";
import { clip } from "../../lib/bounded-text.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Live } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { orAborted } from "../../lib/or-aborted.ts";
import { Wakes } from "../../lib/wakes.ts";
import type { ObservedPod } from "../../model/observed.ts";
import type { LogSweeper } from "./log-sweeper.ts";
import { type DeadContainerLimits, planDeadContainers } from "./plan-dead-containers.ts";

/** The longest time between two passes in milliseconds: nothing but an accident leaves logs of pods that are gone. */
const PERIOD_MS = 10 * 60_000;
/** The shortest time between two passes, however often pods change. */
const SHORTEST_MS = 1000;
/** A pass that failed, or had to wait for the sources, is repeated after this. */
const RETRY_MS = 60_000;
/** The longest time in milliseconds that the workers are waited for. */
const REMOVAL_MS = 60_000;
/** Bytes of an error in an event. */
const ERROR_BYTES = 1024;

export interface ContainerCollectorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly logs: Pick<LogSweeper, "sweep">;
  /** True once every source has delivered all its pods. */
  isComplete(): boolean;
  observed(): readonly ObservedPod[];
  /** True for a pod that ended, and whose status somebody else keeps. */
  isDispensable(uid: string): boolean;
  /** Has the worker of a pod remove terminated containers, or all that the runtime has of a pod that ended. */
  discard(uid: string, what: ReadonlySet<string> | "all"): Promise<void>;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/**
 * Removes what is left of containers and pods. Who removes a pod's own containers, and with how many of each kept, is
 * its worker (`src/pods/plan/prune.ts`); this decides what is too much on the whole node, and removes logs of pods that
 * are gone.
 */
export class ContainerCollector {
  private readonly wakes: Wakes;
  /** The pods were all known once: until then each of their changes may complete them. */
  private wasComplete = false;

  constructor(
    private readonly deps: ContainerCollectorDeps,
    private readonly limits: Live<DeadContainerLimits>,
  ) {
    this.wakes = new Wakes(deps.clock);
  }

  /** Collects until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    this.limits.onChange(() => this.wakes.wake(), { signal });
    let sweepAt = 0;
    while (!signal.aborted) {
      this.wakes.clear();
      this.enforceTotal();
      const { mono } = clock.now();
      if (mono >= sweepAt || (!this.wasComplete && this.deps.isComplete())) sweepAt = mono + (await this.sweep(signal));
      await this.wakes.sleep(Math.max(SHORTEST_MS, sweepAt - clock.now().mono), signal);
      if (!signal.aborted) await clock.sleep(SHORTEST_MS, { signal }).catch(() => undefined);
    }
  }

  /** The containers of a pod changed. */
  wake(): void {
    if (this.limits.current.total >= 0 || !this.wasComplete) this.wakes.wake();
  }

  /**
   * Removes what pods that ended left behind, also of those that their source still has, and logs of pods that are
   * gone; as under disk pressure. Pods whose status only their containers tell keep them.
   */
  async deleteAllUnusedContainers({ signal }: Abortable): Promise<void> {
    const { deps } = this;
    deps.log.info("Deleting unused containers");
    const ended = deps.observed().filter(({ uid }) => deps.isDispensable(uid));
    const removals = ended.map(({ uid }) => deps.discard(uid, "all"));
    await withScope([signal], { clock: deps.clock, ms: REMOVAL_MS }, (limited) =>
      orAborted(Promise.all(removals), limited),
    );
    if (deps.isComplete()) await deps.logs.sweep({ signal });
  }

  /** The workers remove; what they have not removed by the next pass is planned again. */
  private enforceTotal(): void {
    const { deps } = this;
    const { current } = this.limits;
    if (current.total < 0) return;
    const pods = deps.observed().map((pod) => ({ ...pod, isDispensable: deps.isDispensable(pod.uid) }));
    for (const [uid, ids] of planDeadContainers(pods, current, deps.clock.now())) void deps.discard(uid, ids);
  }

  /** Answers the milliseconds to the next sweep. */
  private async sweep(signal: AbortSignal): Promise<number> {
    const { logs, log, event, isComplete } = this.deps;
    if (!isComplete()) return RETRY_MS;
    this.wasComplete = true;
    try {
      await logs.sweep({ signal });
      return PERIOD_MS;
    } catch (error) {
      if (isAborted(error, signal)) return RETRY_MS;
      log.error("Container garbage collection failed", error);
      event("Warning", "ContainerGCFailed", clip(messageOf(error), ERROR_BYTES));
      return RETRY_MS;
    }
  }
}
