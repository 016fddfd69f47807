/** Something that happened to an object of the cluster. */
export interface EventFacts {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  /** Whom it is about. */
  readonly about: EventSubject;
}

export interface EventSubject {
  readonly kind: "Pod" | "Node";
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `spec.containers{web}`, where it is about one container. */
  readonly fieldPath?: string;
}

/** Similar events within this time are combined once there are more than so many of them, as in Kubernetes. */
const SIMILAR = { windowMs: 600_000, most: 10 };
/** Events about one object: so many at once, then one in five minutes. */
const SPAM = { burst: 25, perMs: 300_000 };
/** Objects, series and groups that are remembered. */
const REMEMBERED = 4096;

interface Group {
  since: number;
  readonly messages: Set<string>;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** A series of equal events, and the object that shows it once it was sent. */
export interface Series {
  count: number;
  readonly first: number;
  last: number;
  /** Name of the object that the server has; undefined before the first was accepted. */
  name: string | undefined;
}

/** What is to be sent: a new series, or one more of a known one. */
export interface Correlated {
  readonly facts: EventFacts;
  readonly key: string;
  readonly series: Series;
}

/**
 * Turns what happened into what is worth sending: equal events are counted in one object, many similar ones become one,
 * and an object that makes too many is held back. Keeps a bounded memory; takes times (monotonic ms), tells no clock.
 */
export class EventCorrelator {
  private readonly groups = new Map<string, Group>();
  private readonly series = new Map<string, Series>();
  private readonly buckets = new Map<string, Bucket>();

  /** Undefined when the event is held back. */
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

  /** The server no longer has the series' object: the next event makes a new one. */
  forget(key: string): void {
    this.series.delete(key);
  }

  /** Combined events are one series, whose message is that of the newest. */
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

/** The one that was not used for longest goes first. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > REMEMBERED && !oldest.done) map.delete(oldest.value);
}
