import { type Abortable, isAborted, manyListeners, TimeLimitError } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { orAborted } from "../lib/or-aborted.ts";
import type { Pod } from "../model/generated/types.ts";
import type { CheckSlots } from "./check-slots.ts";
import type { DriverSpaces } from "./driver-spaces.ts";
import type { GroupMark } from "./group-mark.ts";
import { GroupProgress } from "./group-progress.ts";
import type { ReadyVolume, VolumeDeps, VolumeKind, VolumeOfPod, VolumeSource } from "./kind.ts";
import type { OperationMeter } from "./metrics.ts";
import type { VolumeOperations } from "./operations.ts";
import { CheckLoop } from "./volume-check.ts";
import { setUpEvent } from "./volume-error.ts";

/** Where a volume reports to. */
export interface VolumeHooks {
  readonly log: Logger;
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

export interface PodVolumeDeps extends Omit<VolumeDeps, "node" | "tokens"> {
  readonly operations: Pick<VolumeOperations, "setUp" | "find">;
  readonly meter: OperationMeter;
  /** When volumes are checked; one object for all of them. */
  readonly slots: CheckSlots;
  readonly hooks: VolumeHooks;
  /** A file that tells the next agent that the volume was not given to the group of the pod as a whole. */
  readonly groupMark: GroupMark;
  /** Volumes whose drivers count their space. */
  readonly spaces?: Pick<DriverSpaces, "add" | "remove"> | undefined;
}

/** Where the space of a volume is counted. */
export interface VolumePlace {
  readonly path: string;
  /** By child processes: what is mounted there may hang. */
  readonly isRemote?: boolean;
  /** By its driver. */
  readonly hasDriver?: boolean;
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
  private isWalking = false;
  /** Monotonic time of the first attempt. */
  private wantedSince: number | undefined;
  private timer: Timer | undefined;
  private readonly closing = manyListeners();
  private attempt: Promise<void> | undefined;
  private readonly backoff = new Backoff(SET_UP_BACKOFF);
  private readonly checks: CheckLoop;
  private readonly waiters = new Set<() => void>();
  private changes = 0;

  constructor(
    private of: VolumeOfPod,
    private readonly kind: VolumeKind,
    private readonly deps: PodVolumeDeps,
  ) {
    const { clock, slots } = deps;
    const inTurn = (work: () => Promise<void>): Promise<void> => this.serially(work);
    this.checks = new CheckLoop({ clock, slots, inTurn, failed: (error) => this.report(error) }, this.closing.signal);
  }

  get name(): string {
    return this.of.volume.name;
  }

  get source(): VolumeSource | undefined {
    return this.ready?.source;
  }

  /** Where its space is counted, and by whom; undefined before it is ready, and if it has none of its own. */
  get place(): VolumePlace | undefined {
    const { source, space } = this.ready ?? {};
    if (space !== undefined) return { path: space.path, hasDriver: true };
    return source?.kind === "path" ? source : undefined;
  }

  /** A group that processes of the pod need to use the volume. */
  get gid(): number | undefined {
    return this.ready?.gid;
  }

  /** The plugin that set it up; undefined before that. */
  get plugin(): string | undefined {
    return this.ready?.plugin;
  }

  /** It is mounted, and its files get the group of the pod, which reports its progress itself. */
  get isChangingGroup(): boolean {
    return this.isWalking;
  }

  /** Counts a failed attempt; answers how long to wait before the next, in milliseconds. It grows until one succeeds. */
  failed(): number {
    const delayMs = this.backoff.next(this.deps.clock.now());
    return Math.min(delayMs, this.kind.maxBackoffMs ?? SET_UP_BACKOFF.maxMs);
  }

  /** Grows with each change of what the volume is made from: read it before an attempt, pass it to `untilChanged`. */
  get version(): number {
    return this.changes;
  }

  /**
   * Resolves when the volume is ready; rejects with why it is not. Does nothing for one that is. An abort ends the wait
   * and not the attempt, which has time limits of its own: whoever asks next waits for it, and closing ends it.
   */
  ensure({ signal }: Abortable): Promise<void> {
    if (this.attempt === undefined) {
      const attempt = this.begin().finally(() => {
        this.attempt = undefined;
      });
      // It may fail when nobody waits any more.
      attempt.catch(() => undefined);
      this.attempt = attempt;
    }
    return orAborted(this.attempt, signal);
  }

  /** Follows a volume that an earlier agent set up, and brings it up to date. */
  adopt(): void {
    this.subscribe();
    this.refresh();
  }

  /** Follows a volume that an earlier agent set up, if it is there as a whole, and leaves it as it is. */
  find(): void {
    const { signal } = this.closing;
    this.serially(async () => {
      if (this.ready !== undefined || signal.aborted || (await this.groupMark?.isSet())) return;
      const found = await this.deps.operations.find(this.kind, this.of, { signal });
      if (found !== undefined) this.take(found);
    }).catch((error: unknown) => {
      // The API server may be unavailable: the pod runs, and does not notice.
      if (isAborted(error, signal) || signal.aborted) return;
      const waitMs = this.backoff.next(this.deps.clock.now());
      this.timer?.cancel();
      this.timer = this.deps.clock.after(waitMs, () => this.find());
    });
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
    if (this.ready?.space !== undefined) this.deps.spaces?.remove(this.ready.space.path);
    await this.busy;
  }

  private begin(): Promise<void> {
    const { signal } = this.closing;
    this.wantedSince ??= this.deps.clock.now().mono;
    return this.serially(async () => {
      this.subscribe();
      // A volume whose update failed keeps its old content, which is enough for a container to restart.
      if (this.ready !== undefined && (await this.isIntact({ signal }))) return;
      await this.setUp({ signal });
    });
  }

  private async setUp({ signal }: Abortable): Promise<void> {
    signal.throwIfAborted();
    this.isStale = false;
    const isFirst = this.ready === undefined;
    if (isFirst) await this.groupMark?.set();
    const ready = await this.deps.operations.setUp(this.kind, this.of, { signal });
    if (isFirst) {
      await this.changeGroup(ready, signal);
      await this.groupMark?.remove();
      this.announce(ready);
    }
    this.take(ready);
  }

  /** Undefined if a later agent does not look for the volume, or its files keep their group. */
  private get groupMark(): GroupMark | undefined {
    const mayBeFound = this.kind.staging !== undefined || this.kind.find !== undefined;
    const { fsGroup } = this.of.pod.spec.securityContext ?? {};
    return mayBeFound && fsGroup !== undefined ? this.deps.groupMark : undefined;
  }

  private announce({ events = [], plugin = "" }: ReadyVolume): void {
    for (const { type = "Normal", reason, message } of events) this.deps.hooks.event(type, reason, message);
    if (this.wantedSince !== undefined) this.deps.meter.mounted(plugin, this.wantedSince);
  }

  private take(ready: ReadyVolume): void {
    this.ready = ready;
    this.backoff.reset();
    this.planRefresh(ready.refreshAt);
    this.checks.follow(ready.check);
    const { spaces, hooks } = this.deps;
    const abnormal = (message: string): void =>
      hooks.event("Warning", "VolumeConditionAbnormal", `Volume ${this.name}: ${message}`);
    if (ready.space !== undefined && !this.closing.signal.aborted) spaces?.add(ready.space, abnormal);
  }

  /** Somebody may have unmounted it meanwhile, and a server may be gone. */
  private async isIntact(options: Abortable): Promise<boolean> {
    const { host } = this.deps;
    const source = this.ready?.source;
    if (this.ready?.isMounted !== true || source?.kind !== "path") return true;
    if (source.isRemote !== true) return host.isMountPoint(source.path);
    if ((await host.mountAt(source.path)) === undefined) return false;
    try {
      await host.kindOf(source.path, options);
      return true;
    } catch (error) {
      options.signal.throwIfAborted();
      // A container that gets it now would hang, and the runtime with it.
      if (error instanceof TimeLimitError)
        throw new Error(`what is mounted at ${source.path} does not answer: ${error.message}`, { cause: error });
      return false;
    }
  }

  private async changeGroup({ source, takesGroup, plugin = "" }: ReadyVolume, signal: AbortSignal): Promise<void> {
    const { fsGroup: gid, fsGroupChangePolicy } = this.of.pod.spec.securityContext ?? {};
    if (gid === undefined || takesGroup !== true || source.kind !== "path" || source.readonly) return;
    const { clock, host, hooks } = this.deps;
    const progress = new GroupProgress({ clock, event: hooks.event }, this.of);
    const onlyOnMismatch = fsGroupChangePolicy === "OnRootMismatch";
    const onProgress = (count: number): void => progress.report(count);
    const isRemote = source.isRemote === true;
    const request = { gid, onlyOnMismatch, signal, onProgress, ...(isRemote && { isRemote }) };
    const operation = { plugin, operation: "volume_apply_access_control" } as const;
    this.isWalking = true;
    try {
      await this.deps.meter.measure(operation, () => host.changeGroup(source.path, request));
    } finally {
      this.isWalking = false;
    }
  }

  private subscribe(): void {
    if (this.isSubscribed || this.closing.signal.aborted) return;
    this.isSubscribed = true;
    const references = this.kind.references?.(this.of) ?? { objects: [] };
    const { objects, trustBundles = [], podCertificates = [] } = references;
    const { signal } = this.closing;
    const { deps } = this;
    for (const ref of objects) deps.objects.onChange(ref, () => this.changed(), { signal });
    for (const bundle of trustBundles) deps.trustBundles?.onChange(bundle, () => this.changed(), { signal });
    for (const need of podCertificates) deps.podCertificates?.onChange(need, () => this.changed(), { signal });
    references.onChange?.(() => this.changed(), { signal });
  }

  private changed(): void {
    if (this.closing.signal.aborted) return;
    this.changes++;
    this.backoff.reset();
    for (const waiter of [...this.waiters]) waiter();
    if (this.ready === undefined || this.kind.isLive !== true) return;
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
      this.report(error);
      this.retryAfter(waitMs);
    });
  }

  private report(error: unknown): void {
    this.deps.hooks.log.warn("Failed to update volume", { volume: this.name, error: messageOf(error) });
    const event = setUpEvent(this.name, error);
    if (event !== undefined) this.deps.hooks.event("Warning", event.reason, event.message);
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
