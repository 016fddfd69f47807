import { type Abortable, AbortScope, TimeLimitError, withScope } from "../lib/abort.ts";
import { Backoff } from "../lib/backoff.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Pod } from "../model/generated/types.ts";
import { podIdentity } from "../model/pod-facts.ts";
import type { NextTry, PodIdentity } from "../model/step.ts";
import { type PodVolume, SET_UP_BACKOFF, setUpFailed } from "./pod-volume.ts";

export interface PrepareOptions extends Abortable {
  /** Called with what is waited for whenever that changes: which volumes, since when, why. */
  readonly onWait?: (detail: string) => void;
}

export interface VolumeWaitDeps {
  readonly clock: Clock;
  event(pod: PodIdentity, event: { type: "Normal" | "Warning"; reason: string; message: string }): void;
  /** What the pod waits for and when that is retried; undefined if it does not wait any more. */
  waiting(pod: PodIdentity, next: NextTry | undefined): void;
}

/** A volume that a pod waits for. */
interface Wait {
  readonly since: number;
  readonly why: string;
  /** Wall-clock milliseconds of the next attempt. */
  readonly next: number;
}

/** A pod's start waits for its volumes this long before it is planned anew, as in Kubernetes. */
const WAIT_LIMIT_MS = 123_000;

/** Waits for all volumes of one pod and reports which of them are missing. */
export class VolumeWait {
  private readonly waits = new Map<string, Wait>();

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
      const names = [...this.waits.keys()].join(", ");
      const whys = [...this.waits].map(([name, { why }]) => `${name}: ${why}`).join("; ");
      throw new Error(
        `unmounted volumes=[${names}], unattached volumes=[], failed to process volumes=[]: context deadline exceeded (${whys})`,
      );
    });
  }

  private async one(volume: PodVolume, signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(SET_UP_BACKOFF);
    for (;;) {
      const { version } = volume;
      try {
        await volume.ensure({ signal });
        if (this.waits.delete(volume.name)) this.report();
        return;
      } catch (error) {
        if (signal.aborted) throw error;
        const delayMs = Math.min(backoff.next(this.deps.clock.now()), volume.maxBackoffMs);
        this.failed(volume, error, delayMs);
        await this.pause(volume, { version, delayMs, signal });
      }
    }
  }

  private failed(volume: PodVolume, error: unknown, delayMs: number): void {
    const { wall } = this.deps.clock.now();
    const since = this.waits.get(volume.name)?.since ?? wall;
    this.waits.set(volume.name, { since, why: messageOf(error), next: wall + delayMs });
    this.report();
    const message = setUpFailed(volume.name, error);
    this.deps.event(podIdentity(this.pod), { type: "Warning", reason: "FailedMount", message });
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
