import { type Abortable, AbortScope, TimeLimitError, withScope } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Pod } from "../model/generated/types.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { ClaimIdentity, NextTry, PodIdentity } from "../model/step.ts";
import type { PodVolume } from "./pod-volume.ts";
import { AttachLimitError, setUpEvent, VolumePendingError } from "./volume-error.ts";

export interface PrepareOptions extends Abortable {
  /** Called with what is waited for whenever that changes: which volumes, since when, why. */
  readonly onWait?: (detail: string) => void;
}

/** An event of a volume, about its pod or, with `claim`, about the claim that it is of. */
export interface VolumeEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  readonly claim?: ClaimIdentity;
}

export interface VolumeWaitDeps {
  readonly clock: Clock;
  event(pod: PodIdentity, event: VolumeEvent): void;
  /** What the pod waits for and when that is retried; undefined if it does not wait any more. */
  waiting(pod: PodIdentity, next: NextTry | undefined): void;
  /** Ends a pod that cannot start on this node. */
  reject?(pod: PodIdentity, rejection: { readonly reason: string; readonly message: string }): void;
}

/** A volume that a pod waits for. */
interface Wait {
  readonly since: number;
  readonly why: string;
  /** Wall-clock milliseconds of the next attempt. */
  readonly next: number;
  readonly error?: unknown;
}

/** A pod's start waits for its volumes this long before it is planned anew, as in Kubernetes. */
const WAIT_LIMIT_MS = 123_000;

/** An attempt that takes this long is shown, and is an event, in milliseconds. */
const SLOW_MS = 10_000;
const SLOW_EVENT_MS = 30_000;
const BUSY = "a server, a disk or a driver may not answer";

/** Waits for all volumes of one pod and reports which of them are missing. */
export class VolumeWait {
  private readonly waits = new Map<string, Wait>();
  /** When the attempt began that is under way, by wall-clock time. */
  private readonly busy = new Map<string, number>();

  constructor(
    private readonly deps: VolumeWaitDeps,
    private readonly pod: Pod,
    private readonly options: PrepareOptions,
  ) {}

  /** Sets up all volumes side by side, and those that fail again until the signal aborts or the limit is over. */
  async all(volumes: readonly PodVolume[]): Promise<void> {
    const limit = { clock: this.deps.clock, ms: WAIT_LIMIT_MS };
    await withScope([this.options.signal], limit, async (signal) => {
      // Ends only after all of them: then they may be torn down.
      const results = await Promise.allSettled(volumes.map((volume) => this.one(volume, signal)));
      const failed = results.find((result) => result.status === "rejected");
      if (failed === undefined) return;
      if (!(signal.reason instanceof TimeLimitError)) throw failed.reason;
      for (const volume of volumes) if (this.busy.has(volume.name)) this.stillBusy(volume);
      const whys = [...this.waits].map(([name, { why }]) => `${name}: ${why}`).join("; ");
      const left = this.left();
      this.rejectFull(left);
      throw new Error(`${left} (${whys})`);
    });
  }

  /** The volumes that are missing, in the words of Kubernetes. */
  private left(): string {
    const waits = [...this.waits];
    const unattached = waits.filter(([, { error }]) => error instanceof VolumePendingError).map(([name]) => name);
    const lists = `unmounted volumes=[${waits.map(([name]) => name).join(", ")}], unattached volumes=[${unattached.join(", ")}]`;
    return `${lists}, failed to process volumes=[]: context deadline exceeded`;
  }

  /** A pod whose volumes find no room on this node waits in vain: its controller may have it run elsewhere. */
  private rejectFull(left: string): void {
    const isFull = [...this.waits.values()].some(({ error }) => error instanceof AttachLimitError);
    if (!isFull) return;
    const message = `Node has reached its volume attachment limit, rejecting pod. ${left}`;
    this.deps.reject?.(podIdentity(this.pod), { reason: "VolumeAttachmentLimitExceeded", message });
  }

  private async one(volume: PodVolume, signal: AbortSignal): Promise<void> {
    for (;;) {
      const { version } = volume;
      const watch = this.watch(volume);
      try {
        await volume.ensure({ signal });
        this.busy.delete(volume.name);
        if (this.waits.delete(volume.name)) this.report();
        return;
      } catch (error) {
        // One that the wait was given up for is still busy.
        if (signal.aborted) throw error;
        this.busy.delete(volume.name);
        const delayMs = volume.failed();
        this.failed(volume, error, delayMs);
        await this.pause(volume, { version, delayMs, signal });
      } finally {
        for (const timer of watch) timer.cancel();
      }
    }
  }

  /** Reports an attempt that takes long: it waits for something that nobody has heard of. */
  private watch(volume: PodVolume): readonly Timer[] {
    const { clock } = this.deps;
    this.busy.set(volume.name, clock.now().wall);
    const event = (): void => {
      if (volume.isChangingGroup) return;
      const message = `MountVolume.SetUp for volume "${volume.name}" has not ended after ${SLOW_EVENT_MS / 1000} s: ${BUSY}`;
      this.deps.event(podIdentity(this.pod), { type: "Warning", reason: "FailedMount", message });
    };
    return [
      clock.after(SLOW_MS, () => {
        this.stillBusy(volume);
        this.report();
      }),
      clock.after(SLOW_EVENT_MS, event),
    ];
  }

  private stillBusy({ name, isChangingGroup }: PodVolume): void {
    const { wall } = this.deps.clock.now();
    const last = this.waits.get(name);
    const since = last?.since ?? this.busy.get(name) ?? wall;
    const busyMs = wall - (this.busy.get(name) ?? wall);
    // An attempt that has just begun says less than how the one before it failed.
    if (last !== undefined && busyMs < SLOW_MS) return;
    const why = isChangingGroup ? "its files get the group of the pod" : BUSY;
    const seconds = Math.round(busyMs / 1000);
    this.waits.set(name, { since, why: `being set up for ${seconds} s: ${why}`, next: wall, error: last?.error });
  }

  private failed(volume: PodVolume, error: unknown, delayMs: number): void {
    const { wall } = this.deps.clock.now();
    const since = this.waits.get(volume.name)?.since ?? wall;
    this.waits.set(volume.name, { since, why: messageOf(error), next: wall + delayMs, error });
    this.report();
    const event = setUpEvent(volume.name, error);
    if (event !== undefined) this.deps.event(podIdentity(this.pod), { type: "Warning", ...event });
  }

  /** Until the next attempt is due or what the volume waits for has changed, whichever comes first. */
  private async pause(
    volume: PodVolume,
    { version, delayMs, signal }: Abortable & { version: number; delayMs: number },
  ): Promise<void> {
    const scope = new AbortScope([signal]);
    try {
      const due = this.deps.clock.sleep(delayMs, { signal: scope.signal });
      await Promise.race([due, volume.untilChanged(version, { signal: scope.signal })]);
    } finally {
      scope.abort();
      scope.dispose();
    }
    signal.throwIfAborted();
  }

  private report(): void {
    const detail = describeWaits(this.waits);
    const at = Math.min(...[...this.waits.values()].map(({ next }) => next));
    this.options.onWait?.(detail);
    this.deps.waiting(podIdentity(this.pod), this.waits.size === 0 ? undefined : { at, why: detail });
  }
}

/** `config since 10:11:12Z: configmap "config" not found; …` */
function describeWaits(waits: ReadonlyMap<string, Wait>): string {
  const one = ([name, { since, why }]: [string, Wait]): string =>
    `${name} since ${new Date(since).toISOString().slice(11, 19)}Z: ${why}`;
  return [...waits].map(one).join("; ");
}
