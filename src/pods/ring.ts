import type { Clock, Instant } from "../lib/clock.ts";
import type { Pod } from "../model/generated/types.ts";
import type { DesiredPods, SourceSnapshot } from "./desired.ts";
import type { ListedPod } from "./observe/observe.ts";
import { OrphanSweeper, type OrphanSweeperDeps } from "./orphans.ts";
import type { WorkerPool } from "./worker/pool.ts";

/** A snapshot with the objects (ConfigMaps, Secrets) of its manifests. */
export interface PublishedSnapshot<Objects> extends SourceSnapshot {
  readonly objects: Objects;
}

export interface PodRingDeps<Objects> extends OrphanSweeperDeps {
  readonly clock: Clock;
  readonly desired: DesiredPods;
  readonly pool: Pick<WorkerPool, "worker" | "apply" | "listed">;
  /** Takes over the objects of a source. */
  readonly objects: { apply(source: string, objects: Objects): void };
  /** Called with all desired pods after each change of a source, before their workers. */
  desiredChanged(pods: readonly Pod[]): void;
}

/** Where facts enter the ring: whole snapshots of the sources, and relists of the runtime. */
export class PodRing<Objects> {
  private readonly orphans: OrphanSweeper;
  private inRuntime: ReadonlySet<string> | undefined;
  private lastListed: Instant | undefined;

  constructor(
    private readonly deps: PodRingDeps<Objects>,
    signal: AbortSignal,
  ) {
    this.orphans = new OrphanSweeper(deps, signal);
  }

  /** Time of the last relist; undefined before the first. */
  get listedAt(): Instant | undefined {
    return this.lastListed;
  }

  /** Takes over the snapshot of a source. Objects come first, so that a file may hold a pod and what it refers to. */
  publish(snapshot: PublishedSnapshot<Objects>): void {
    const { desired, pool, objects } = this.deps;
    objects.apply(snapshot.source, snapshot.objects);
    const change = desired.apply(snapshot);
    this.deps.desiredChanged(desired.list().map(({ pod }) => pod));
    pool.apply(change);
    this.orphans.sweep(this.inRuntime);
  }

  /** Takes over a relist: every pod of the runtime, by UID. */
  listed(pods: ReadonlyMap<string, ListedPod>): void {
    this.lastListed = this.deps.clock.now();
    this.deps.pool.listed(pods);
    this.inRuntime = new Set(pods.keys());
    this.orphans.sweep(this.inRuntime);
  }
}
