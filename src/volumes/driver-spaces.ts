import { type Abortable, withScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { Lane } from "../lib/lane.ts";
import { fixed } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import { orAborted } from "../lib/or-aborted.ts";
import type { VolumeSpace } from "../model/usage.ts";
import type { SpaceSource } from "./kind.ts";

/** How long the first answer about a volume is waited for, in milliseconds; later ones are not waited for. */
const FIRST_MS = 1000;
/** Calls to a driver at a time: one with hundreds of volumes is not flooded, and one that hangs delays no other. */
const MOST_CALLS = fixed(16);

export interface DriverSpacesDeps {
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
  readonly metrics?: Metrics;
}

interface Entry {
  source: SpaceSource;
  /** Called with the driver's words whenever it reports a volume as abnormal. */
  abnormal: (message: string) => void;
  asking: Promise<void> | undefined;
  last: { readonly at: number; readonly space: VolumeSpace | undefined } | undefined;
  /** Of the last attempt: logged once. */
  error: string | undefined;
}

/**
 * The space of volumes as their drivers count it, by path. A driver is asked when somebody wants to know and the last
 * answer is too old, once at a time for a volume; who asks gets the last answer and does not wait for the next.
 */
export class DriverSpaces {
  private readonly entries = new Map<string, Entry>();
  private readonly lanes = new Map<string, Lane>();
  private readonly observe: (seconds: number, labels: readonly string[]) => void;

  constructor(
    private readonly deps: DriverSpacesDeps,
    /** Aborts when the agent stops. */
    private readonly signal: AbortSignal,
  ) {
    const seconds = deps.metrics?.histogram(
      "kubelet_volume_metric_collection_duration_seconds",
      "Duration in seconds to calculate volume stats",
      ["metric_source"],
    );
    this.observe = (value, labels) => seconds?.observe(value, labels);
  }

  /** A volume is there; replaces the one at its path. A call in flight goes on: a driver that hangs gets no second one. */
  add(source: SpaceSource, abnormal: (message: string) => void): void {
    const known = this.entries.get(source.path);
    if (known !== undefined) Object.assign(known, { source, abnormal });
    else this.entries.set(source.path, { source, abnormal, asking: undefined, last: undefined, error: undefined });
  }

  remove(path: string): void {
    this.entries.delete(path);
  }

  /** The last answer; asks again if it is older. Only the first is waited for, and not for long. */
  async read(path: string, { signal, maxAgeMs }: Abortable & { maxAgeMs: number }): Promise<VolumeSpace | undefined> {
    const entry = this.entries.get(path);
    if (entry === undefined) return undefined;
    const { clock } = this.deps;
    const isOld = entry.last === undefined || clock.now().mono - entry.last.at >= maxAgeMs;
    if (isOld) entry.asking ??= this.ask(entry);
    const { asking } = entry;
    if (entry.last === undefined && asking !== undefined) {
      const limit = { clock, ms: FIRST_MS };
      await withScope([signal], limit, (inner) => orAborted(asking, inner)).catch(() => signal.throwIfAborted());
    }
    return entry.last?.space;
  }

  /**
   * Asks about all volumes once a period, also while nobody wants to know: their drivers report their health. The answers
   * are not waited for: a driver that hangs would delay the others.
   */
  async watch(periodMs: () => number, signal: AbortSignal): Promise<void> {
    for (;;) {
      const ms = periodMs();
      await this.deps.clock.sleep(ms > 0 ? ms : FIRST_MS, { signal });
      if (ms > 0) for (const entry of this.entries.values()) entry.asking ??= this.ask(entry);
    }
  }

  /** Never rejects. */
  private async ask(entry: Entry): Promise<void> {
    const { clock, log } = this.deps;
    const { source } = entry;
    const { signal } = this;
    const began = clock.now().mono;
    try {
      const space = await this.lane(source.driver).run(() => source.read({ signal }), { signal });
      entry.last = { at: began, space };
      entry.error = undefined;
      if (space?.condition?.isAbnormal === true) entry.abnormal(space.condition.message);
    } catch (error) {
      // What was known before stays until there is an answer, and is asked for again by the next one.
      entry.last ??= { at: began, space: undefined };
      entry.last = { ...entry.last, at: began };
      const message = messageOf(error);
      if (message !== entry.error && !this.signal.aborted) {
        log.warn("Failed to get volume statistics", { path: source.path, driver: source.driver, error: message });
      }
      entry.error = message;
    } finally {
      this.observe((clock.now().mono - began) / 1000, [source.driver]);
      entry.asking = undefined;
    }
  }

  private lane(driver: string): Lane {
    const known = this.lanes.get(driver) ?? new Lane(MOST_CALLS, { signal: this.signal });
    this.lanes.set(driver, known);
    return known;
  }
}
