import type { Abortable } from "../../lib/abort.ts";
import { type FirstListDeps, untilTrue } from "../first-list.ts";
import type { PodPool } from "./pods.ts";

export interface PodAdoptionDeps extends FirstListDeps {
  readonly pool: Pick<PodPool, "worker" | "isFinished" | "onStatus"> & {
    /** True if the last list of the runtime had something of the pod. */
    isInRuntime(uid: string): boolean;
  };
  /** The pods of all sources. */
  readonly desired: { readonly allSourcesReady: boolean; list(): readonly { readonly uid: string }[] };
}

/** How long an agent that starts during a shutdown waits for the runtime, its sources and workers, in milliseconds. */
const ADOPTION_MS = 10_000;

/**
 * Follows whether the pods that an earlier agent left have their workers. The first lists of the runtime and of the
 * sources do not suffice: pods wait for their admission until the allocations of the earlier agent are restored.
 */
export class PodAdoption {
  private isOver = false;

  constructor(private readonly deps: PodAdoptionDeps) {}

  /**
   * Checks at each new status until the signal aborts. Once over it stays over: a pod that is added later may wait for
   * another one to end, which a shutdown does not wait for.
   */
  follow({ signal }: Abortable): void {
    this.deps.pool.onStatus(() => this.check(), { signal });
  }

  /** Resolves when each pod of the runtime has its worker or is to have none, after 10 s, or when the signal aborts. */
  done({ signal }: Abortable): Promise<void> {
    return untilTrue(() => this.check(), { clock: this.deps.clock, ms: ADOPTION_MS }, signal);
  }

  private check(): boolean {
    const { pool, desired, listedAt } = this.deps;
    // What never ran may wait for long, as for a device plugin, and is nothing to end.
    const isDecided = (uid: string): boolean =>
      !pool.isInRuntime(uid) || pool.worker(uid) !== undefined || pool.isFinished(uid);
    this.isOver ||=
      listedAt() !== undefined && desired.allSourcesReady && desired.list().every(({ uid }) => isDecided(uid));
    return this.isOver;
  }
}
