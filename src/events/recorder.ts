import { ApiError, EVENTS, type KubeApi } from "../adapters/kubeapi/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Event } from "../model/generated/types.ts";
import { type Correlated, EventCorrelator, type EventFacts } from "./correlate.ts";

/** Size of the queue; further events are dropped and counted: a worker never waits for one. */
const MOST_WAITING = 1000;
/** Attempts per event, and the time between them. */
const TRIES = { most: 12, waitMs: 10_000 };
/** How long normal events give way to pod starts, and how often that is checked, in milliseconds. */
const GIVE_WAY = { mostMs: 10_000, lookMs: 250 };

export interface RecorderDeps {
  /** With its own rate limit, so that events never use up the budget of status updates. */
  readonly api: Pick<KubeApi, "create" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  dropped?(): void;
  /** True while pods are being started: their start takes precedence. */
  isBusy?(): boolean;
}

/** Sends events to the API server. `record` never blocks and never fails. */
export class EventRecorder {
  private readonly correlator = new EventCorrelator();
  private readonly waiting: Correlated[] = [];
  private wake: (() => void) | undefined;
  private lastMark = 0n;

  constructor(
    private readonly deps: RecorderDeps,
    private readonly options: { readonly nodeName: string },
  ) {}

  record(facts: EventFacts): void {
    const correlated = this.correlator.take(facts, this.deps.clock.now());
    if (correlated === undefined) return;
    // An event of a queued series is counted by the queued one.
    if (this.waiting.some(({ key }) => key === correlated.key)) return;
    if (this.waiting.length >= MOST_WAITING) {
      this.deps.dropped?.();
      return;
    }
    this.waiting.push(correlated);
    this.wake?.();
  }

  /** Sends, one after the other, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = this.takeNext();
      if (next !== undefined) await this.deliver(next, signal);
      else if (this.waiting.length === 0) await this.sleep(signal);
      else await this.deps.clock.sleep(GIVE_WAY.lookMs, { signal }).catch(() => undefined);
    }
  }

  /** Returns the first event that may be sent now. Warnings are never held back. */
  private takeNext(): Correlated | undefined {
    if (this.deps.isBusy?.() !== true) return this.waiting.shift();
    const { wall } = this.deps.clock.now();
    const mayGo = ({ facts, series }: Correlated): boolean =>
      facts.type !== "Normal" || Math.abs(wall - series.last) >= GIVE_WAY.mostMs;
    const at = this.waiting.findIndex(mayGo);
    return at === -1 ? undefined : this.waiting.splice(at, 1)[0];
  }

  private async deliver(event: Correlated, signal: AbortSignal): Promise<void> {
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        return await this.send(event, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        // Rejected for good: the namespace is terminating, or the event is invalid. Missing credentials may still come.
        const mayPass = error.isRetryable || error.code === "Unauthorized";
        if (!mayPass || tries >= TRIES.most) {
          this.deps.log.info("Server rejected event", { reason: event.facts.reason, error: error.message });
          return;
        }
        const waitMs = error.retryAfterMs ?? TRIES.waitMs * (tries === 1 ? this.deps.random() : 1);
        await this.deps.clock.sleep(waitMs, { signal }).catch(() => undefined);
      }
    }
  }

  private async send({ facts, series, key }: Correlated, signal: AbortSignal): Promise<void> {
    const { namespace } = facts.about;
    const { count } = series;
    if (series.name !== undefined) {
      const body = { count, lastTimestamp: seconds(series.last), message: facts.message };
      try {
        await this.deps.api.patch(EVENTS, { namespace, name: series.name, type: "merge", body }, { signal });
        return;
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
        // The Event object has expired: a new one is created.
        series.name = undefined;
      }
    }
    try {
      const made = await this.deps.api.create(EVENTS, { namespace, object: this.object(facts, series) }, { signal });
      series.name = made.metadata.name;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "AlreadyExists") throw error;
      this.correlator.forget(key);
    }
  }

  /** Unique for one node and object: the time and a random part, in the order of sending, because lists sort by name. */
  private nextMark(wall: number): bigint {
    const drawn = BigInt(Math.floor(wall * 1e6) + Math.floor(this.deps.random() * 1e6));
    this.lastMark = drawn > this.lastMark ? drawn : this.lastMark + 1n;
    return this.lastMark;
  }

  private object({ about, type, reason, message, annotations }: EventFacts, series: Correlated["series"]): Event {
    const { nodeName } = this.options;
    const { kind, namespace, name, uid, fieldPath } = about;
    const mark = this.nextMark(series.last).toString(16);
    return {
      metadata: { name: `${name}.${mark}`, namespace, ...(annotations && { annotations: { ...annotations } }) },
      involvedObject: {
        kind,
        name,
        uid,
        apiVersion: "v1",
        ...(kind === "Pod" && { namespace }),
        ...(fieldPath !== undefined && { fieldPath }),
      },
      type,
      reason,
      message,
      count: series.count,
      firstTimestamp: seconds(series.first),
      lastTimestamp: seconds(series.last),
      source: { component: "kubelet", host: nodeName },
      reportingComponent: "kubelet",
      reportingInstance: nodeName,
    };
  }

  private sleep(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener("abort", done);
        this.wake = undefined;
        resolve();
      };
      this.wake = done;
      signal.addEventListener("abort", done, { once: true });
    });
  }
}

function seconds(wall: number): string {
  return `${new Date(wall).toISOString().slice(0, 19)}Z`;
}
