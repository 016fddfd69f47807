/** An event about an API object. */
export interface EventFacts {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  /** Annotations of the Event object. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** The involved object. */
  readonly about: EventSubject;
}

export interface EventSubject {
  readonly kind: "Pod" | "Node" | "PersistentVolumeClaim";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `spec.containers{web}` for an event about one container. */
  readonly fieldPath?: string;
}

/** Similar events within this interval are aggregated once there are more than the maximum, as in Kubernetes. */
const SIMILAR = { windowMs: 600_000, most: 10 };
/** Spam filter per object: the burst, then one event in five minutes, as in Kubernetes. */
const SPAM = { burst: 25, perMs: 300_000 };
/** Size of the caches of objects, series and groups. */
const REMEMBERED = 4096;

interface Group {
  since: number;
  readonly messages: Set<string>;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** A series of equal events, and its Event object once it was sent. */
export interface Series {
  count: number;
  readonly first: number;
  last: number;
  /** Name of the Event object; undefined before it was created. */
  name: string | undefined;
}

/** What is to be sent: a new series, or a count of a known one. */
export interface Correlated {
  readonly facts: EventFacts;
  readonly key: string;
  readonly series: Series;
}

/**
 * Correlates events: equal ones are counted in one object, many similar ones are aggregated, and an object with too many
 * is filtered. Its memory is bounded; times are passed in (monotonic milliseconds).
 */
export class EventCorrelator {
  private readonly groups = new Map<string, Group>();
  private readonly series = new Map<string, Series>();
  private readonly buckets = new Map<string, Bucket>();

  /** Returns what to send; undefined if the event is filtered. */
  take(facts: EventFacts, at: { readonly mono: number; readonly wall: number }): Correlated | undefined {
    const { facts: combined, key } = this.combine(facts, at.mono);
    const known = this.series.get(key);
    const series = known ?? { count: 0, first: at.wall, last: at.wall, name: undefined };
    series.count++;
    series.last = at.wall;
    remember(this.series, key, series);
    if (!this.mayPass(facts.about, at.mono)) return undefined;
    return { facts: combined, key, series };
  }

  /** The Event object was deleted: the next event of the series creates a new one. */
  forget(key: string): void {
    this.series.delete(key);
  }

  /** Aggregated events are one series with the message of the newest. */
  private combine(facts: EventFacts, now: number): { facts: EventFacts; key: string } {
    const { fieldPath: _path, ...object } = facts.about;
    const key = JSON.stringify([facts.type, facts.reason, object]);
    const known = this.groups.get(key);
    const group =
      known !== undefined && now - known.since < SIMILAR.windowMs ? known : { since: now, messages: new Set<string>() };
    remember(this.groups, key, group);
    if (group.messages.size < SIMILAR.most) group.messages.add(facts.message);
    if (group.messages.size < SIMILAR.most || group.messages.has(facts.message))
      return { facts, key: JSON.stringify([facts.type, facts.reason, facts.message, facts.about]) };
    return { facts: { ...facts, message: `(combined from similar events): ${facts.message}` }, key };
  }

  private mayPass({ kind, namespace, name, uid }: EventSubject, now: number): boolean {
    const key = [kind, namespace, name, uid].join("/");
    const bucket = this.buckets.get(key) ?? { tokens: SPAM.burst, at: now };
    bucket.tokens = Math.min(SPAM.burst, bucket.tokens + (now - bucket.at) / SPAM.perMs);
    bucket.at = now;
    remember(this.buckets, key, bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}

/** Evicts the least recently used entry first. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > REMEMBERED && !oldest.done) map.delete(oldest.value);
}
