import { type Abortable, isAborted, manyListeners } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Pod } from "../model/generated/types.ts";
import { GroupProgress } from "./group-progress.ts";
import type { ReadyVolume, VolumeDeps, VolumeKind, VolumeOfPod, VolumeSource } from "./kind.ts";
import type { OperationMeter } from "./metrics.ts";
import type { VolumeOperations } from "./operations.ts";

/** Where a volume reports to. */
export interface VolumeHooks {
  readonly log: Logger;
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

export interface PodVolumeDeps extends Omit<VolumeDeps, "node" | "tokens"> {
  readonly operations: Pick<VolumeOperations, "setUp">;
  readonly meter: OperationMeter;
  readonly hooks: VolumeHooks;
}

/** Between two attempts, in milliseconds, as in Kubernetes. */
export const SET_UP_BACKOFF = { initialMs: 500, maxMs: 122_000 };

/**
 * One volume of one pod: set up when the pod asks, and, for kinds whose content comes from objects, set up again after
 * each change until it is closed.
 *
 *     new ──ensure──► ready ──(an object, the pod or a token changes)──► setting up ──► ready
 *                                                                            └─(fails)─► the old content, tried again
 *
 * One set-up at a time: callers that come meanwhile wait for it, or for the next.
 */
export class PodVolume {
  private ready: ReadyVolume | undefined;
  private busy: Promise<unknown> = Promise.resolve();
  /** What it is made from has changed since the last attempt began. */
  private isStale = false;
  /** The next attempt waits for its turn. */
  private isQueued = false;
  private isSubscribed = false;
  private timer: Timer | undefined;
  private readonly closing = manyListeners();
  private readonly backoff = new Backoff(SET_UP_BACKOFF);
  private readonly waiters = new Set<() => void>();
  private changes = 0;

  constructor(
    private of: VolumeOfPod,
    private readonly kind: VolumeKind,
    private readonly deps: PodVolumeDeps,
  ) {}

  get name(): string {
    return this.of.volume.name;
  }

  get source(): VolumeSource | undefined {
    return this.ready?.source;
  }

  /** A group that processes of the pod need to use the volume. */
  get gid(): number | undefined {
    return this.ready?.gid;
  }

  /** The plugin that set it up; undefined before that. */
  get plugin(): string | undefined {
    return this.ready?.plugin;
  }

  /** Between two attempts, at most. */
  get maxBackoffMs(): number {
    return this.kind.maxBackoffMs ?? SET_UP_BACKOFF.maxMs;
  }

  /** Grows with each change of what the volume is made from: read it before an attempt, pass it to `untilChanged`. */
  get version(): number {
    return this.changes;
  }

  /** Resolves when the volume is ready; rejects with why it is not. Does nothing for one that is. */
  ensure(options: Abortable): Promise<void> {
    return this.serially(async () => {
      this.subscribe();
      // A volume whose update failed keeps its old content, which is enough for a container to restart.
      if (this.ready !== undefined && (await this.isIntact())) return;
      await this.setUp(options);
    });
  }

  /** Follows a volume that an earlier agent set up, and brings it up to date. */
  adopt(): void {
    this.subscribe();
    this.refresh();
  }

  /** The pod has other labels or annotations. */
  update(pod: Pod): void {
    const before = this.of.pod;
    if (before === pod) return;
    this.of = { ...this.of, pod };
    const isNamed = this.kind.references?.(this.of).pod === true;
    const text = ({ metadata }: Pod): string => JSON.stringify([metadata.labels, metadata.annotations]);
    if (isNamed && text(before) !== text(pod)) this.changed();
  }

  /** Resolves at the first change after `version`, or when the signal aborts. */
  untilChanged(version: number, { signal }: Abortable): Promise<void> {
    if (this.changes !== version || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        this.waiters.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.waiters.add(done);
      signal.addEventListener("abort", done, { once: true });
    });
  }

  /** Ends it: nothing is set up after this resolves. */
  async close(): Promise<void> {
    this.closing.abort();
    this.timer?.cancel();
    await this.busy;
  }

  private async setUp({ signal }: Abortable): Promise<void> {
    signal.throwIfAborted();
    this.closing.signal.throwIfAborted();
    this.isStale = false;
    const ready = await this.deps.operations.setUp(this.kind, this.of, { signal });
    if (this.ready === undefined) await this.changeGroup(ready, signal);
    this.ready = ready;
    this.backoff.reset();
    this.planRefresh(this.ready.refreshAt);
  }

  /** Somebody may have unmounted it meanwhile. */
  private async isIntact(): Promise<boolean> {
    const source = this.ready?.source;
    if (this.ready?.isMounted !== true || source?.kind !== "path") return true;
    return this.deps.host.isMountPoint(source.path);
  }

  private async changeGroup({ source, takesGroup, plugin = "" }: ReadyVolume, signal: AbortSignal): Promise<void> {
    const { fsGroup: gid, fsGroupChangePolicy } = this.of.pod.spec.securityContext ?? {};
    if (gid === undefined || takesGroup !== true || source.kind !== "path" || source.readonly) return;
    const { clock, host, hooks } = this.deps;
    const progress = new GroupProgress({ clock, event: hooks.event }, this.of);
    const onlyOnMismatch = fsGroupChangePolicy === "OnRootMismatch";
    const request = { gid, onlyOnMismatch, signal, onProgress: (count: number) => progress.report(count) };
    const operation = { plugin, operation: "volume_apply_access_control" } as const;
    await this.deps.meter.measure(operation, () => host.changeGroup(source.path, request));
  }

  private subscribe(): void {
    if (this.isSubscribed || this.closing.signal.aborted) return;
    this.isSubscribed = true;
    const { objects, trustBundles = [], podCertificates = [] } = this.kind.references?.(this.of) ?? { objects: [] };
    const { signal } = this.closing;
    const { deps } = this;
    for (const ref of objects) deps.objects.onChange(ref, () => this.changed(), { signal });
    for (const bundle of trustBundles) deps.trustBundles?.onChange(bundle, () => this.changed(), { signal });
    for (const need of podCertificates) deps.podCertificates?.onChange(need, () => this.changed(), { signal });
  }

  private changed(): void {
    if (this.closing.signal.aborted) return;
    this.changes++;
    for (const waiter of [...this.waiters]) waiter();
    if (this.ready === undefined || this.kind.isLive !== true) return;
    this.backoff.reset();
    this.refresh();
  }

  /** Sets up again in the background; several changes at once are one. */
  private refresh(): void {
    this.isStale = true;
    this.timer?.cancel();
    if (this.isQueued) return;
    this.isQueued = true;
    const { signal } = this.closing;
    this.serially(async () => {
      this.isQueued = false;
      if (this.isStale && !signal.aborted) await this.setUp({ signal });
    }).catch((error: unknown) => {
      if (isAborted(error, signal)) return;
      const waitMs = this.backoff.next(this.deps.clock.now());
      this.deps.hooks.log.warn("Failed to update volume", {
        volume: this.name,
        error: messageOf(error),
      });
      this.deps.hooks.event("Warning", "FailedMount", setUpFailed(this.name, error));
      this.retryAfter(waitMs);
    });
  }

  private planRefresh(at: number | undefined): void {
    this.timer?.cancel();
    if (at === undefined) return;
    this.retryAfter(Math.max(1000, at - this.deps.clock.now().wall));
  }

  private retryAfter(ms: number): void {
    this.timer?.cancel();
    if (!this.closing.signal.aborted) this.timer = this.deps.clock.after(ms, () => this.refresh());
  }

  private serially(work: () => Promise<void>): Promise<void> {
    const done = this.busy.then(work);
    this.busy = done.catch(() => undefined);
    return done;
  }
}

/** The words that Kubernetes has for a volume that could not be set up. */
export function setUpFailed(name: string, error: unknown): string {
  return `MountVolume.SetUp failed for volume "${name}" : ${messageOf(error)}`;
}
