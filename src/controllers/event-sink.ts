import { ApiError, apiVersionOf, EVENTS, type KubeApi, type Resource } from "../adapters/kubeapi/index.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import { Wakes } from "../lib/wakes.ts";
import type { Event, ObjectMeta } from "../model/generated/types.ts";

/** An event about an object. */
export interface ControllerEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  readonly resource: Resource<unknown>;
  readonly object: { readonly metadata: ObjectMeta };
}

/** Records events; it never waits and never fails. */
export type RecordEvent = (event: ControllerEvent) => void;

const MOST_WAITING = 1000;
const MOST_SERIES = 2000;

interface Series {
  readonly name: string;
  readonly first: string;
  count: number;
}

export interface EventSinkDeps {
  readonly api: Pick<KubeApi, "create" | "patch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
}

/** Writes the events of controllers, one after the other; equal ones are counted in one object. */
export class EventSink {
  private readonly waiting: { readonly event: ControllerEvent; readonly component: string }[] = [];
  private readonly series = new Map<string, Series>();
  private readonly wakes: Wakes;
  private lastMark = 0n;

  constructor(private readonly deps: EventSinkDeps) {
    this.wakes = new Wakes(deps.clock);
  }

  /** Records for a component such as `default-scheduler`. */
  recorder(component: string): RecordEvent {
    return (event) => {
      if (this.waiting.length >= MOST_WAITING) return;
      this.waiting.push({ event, component });
      this.wakes.wake();
    };
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = this.waiting.shift();
      if (next === undefined) await this.wakes.sleep(undefined, signal);
      else await this.send(next.event, next.component, signal);
    }
  }

  private async send(event: ControllerEvent, component: string, signal: AbortSignal): Promise<void> {
    const { metadata } = event.object;
    const { name = "", namespace = "", uid = "" } = metadata;
    const key = JSON.stringify([uid, event.type, event.reason, event.message, component]);
    const now = `${new Date(this.deps.clock.now().wall).toISOString().slice(0, 19)}Z`;
    const place = namespace === "" ? "default" : namespace;
    try {
      const known = this.series.get(key);
      if (known !== undefined) {
        known.count++;
        const body = { count: known.count, lastTimestamp: now };
        await this.deps.api.patch(EVENTS, { namespace: place, name: known.name, type: "merge", body }, { signal });
        return;
      }
      const made = { name: `${name}.${this.nextMark().toString(16)}`, first: now, count: 1 };
      this.remember(key, made);
      const object = eventObject(event, { component, now, metadata: { name: made.name, namespace: place } });
      await this.deps.api.create(EVENTS, { namespace: place, object }, { signal });
    } catch (error) {
      if (signal.aborted) return;
      // An expired object is made anew by the next event.
      this.series.delete(key);
      if (!(error instanceof ApiError)) this.deps.log.error("Failed to record event", error, { reason: event.reason });
      else if (error.code !== "NotFound")
        this.deps.log.info("Failed to record event", { reason: event.reason, error: error.message });
    }
  }

  /** Unique, and in the order of events: lists sort by name. */
  private nextMark(): bigint {
    const drawn = BigInt(Math.floor(this.deps.clock.now().wall)) * 1_000_000n;
    const mark = drawn + BigInt(Math.floor(this.deps.random() * 1e6));
    this.lastMark = mark > this.lastMark ? mark : this.lastMark + 1n;
    return this.lastMark;
  }

  private remember(key: string, series: Series): void {
    this.series.set(key, series);
    const [oldest] = this.series.keys();
    if (this.series.size > MOST_SERIES && oldest !== undefined) this.series.delete(oldest);
  }
}

interface EventParts {
  readonly component: string;
  readonly now: string;
  readonly metadata: ObjectMeta;
}

function eventObject({ type, reason, message, resource, object }: ControllerEvent, parts: EventParts): Event {
  const { name = "", namespace, uid = "", resourceVersion = "" } = object.metadata;
  return {
    metadata: parts.metadata,
    involvedObject: {
      kind: resource.kind,
      apiVersion: apiVersionOf(resource),
      name,
      uid,
      resourceVersion,
      ...(namespace && { namespace }),
    },
    type,
    reason,
    message,
    count: 1,
    firstTimestamp: parts.now,
    lastTimestamp: parts.now,
    source: { component: parts.component },
    reportingComponent: parts.component,
    reportingInstance: "",
  };
}
