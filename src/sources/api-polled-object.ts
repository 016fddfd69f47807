import { ApiError, CONFIG_MAPS, type KubeApi, SECRETS } from "../adapters/kubeapi/index.ts";
import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";
import type { ConfigMap, Secret } from "../model/generated/types.ts";
import type { ObjectRef } from "../model/object-source.ts";
import { getOrUndefined } from "./api-get.ts";

type Followed = ConfigMap | Secret;

export interface PolledDeps {
  readonly api: Pick<KubeApi, "get">;
  readonly clock: Clock;
  /** Called after each change. */
  changed?(): void;
  /** The object of a checkpoint. */
  fallback?(): Followed | undefined;
}

/** How old a version may be, and how often the object of a running pod is fetched, in milliseconds. */
export interface PollTimes {
  readonly freshMs: number;
  readonly everyMs: number;
}

/**
 * One object that is polled instead of watched: fetched if a reader finds it too old, and periodically as long as it has
 * listeners. For clusters in which nodes may not watch.
 */
export class PolledObject {
  private readonly scope: AbortScope;
  private known: { readonly object: Followed | undefined; readonly at: number } | undefined;
  private asking: Promise<Followed | undefined> | undefined;
  private timer: Timer | undefined;
  private readonly listeners = new Listeners(() => this.stopAsking());

  constructor(
    private readonly deps: PolledDeps,
    private readonly of: { readonly ref: ObjectRef<"ConfigMap" | "Secret">; times(): PollTimes },
    signal: AbortSignal,
  ) {
    this.scope = new AbortScope([signal]);
  }

  /** Returns a version that is recent enough; undefined if it does not exist. Rejects if it cannot be read. */
  async read({ signal }: Abortable): Promise<Followed | undefined> {
    if (this.isFresh()) return this.known?.object;
    try {
      // Several readers share one request, which none of them may cancel for the others.
      const answer = await (this.asking ?? this.ask());
      signal.throwIfAborted();
      return answer;
    } catch (error) {
      signal.throwIfAborted();
      const isAway = error instanceof ApiError && error.isRetryable;
      const last = this.known?.object ?? this.deps.fallback?.();
      if (!isAway || last === undefined) throw error;
      return last;
    }
  }

  /** The newest known version, without a request. */
  peek(): Followed | undefined {
    return this.known?.object;
  }

  /** Marks the known version as stale: the next reader fetches. */
  expire(): void {
    this.asking = undefined;
    if (this.known !== undefined) this.known = { ...this.known, at: Number.NEGATIVE_INFINITY };
  }

  onChange(fn: () => void, options: Abortable): void {
    this.listeners.add(fn, options);
    this.askLater();
  }

  close(): void {
    this.stopAsking();
    this.scope.abort();
    this.scope.dispose();
  }

  private isFresh(): boolean {
    if (this.known === undefined) return false;
    if (this.known.object?.immutable === true) return true;
    return this.deps.clock.now().mono - this.known.at < this.of.times().freshMs;
  }

  private ask(): Promise<Followed | undefined> {
    const asked = this.fetch().finally(() => {
      if (this.asking === asked) this.asking = undefined;
    });
    this.asking = asked;
    return asked;
  }

  private async fetch(): Promise<Followed | undefined> {
    const { kind, namespace, name } = this.of.ref;
    const { api, clock } = this.deps;
    const at = clock.now().mono;
    const call = { at: { namespace, name }, signal: this.scope.signal };
    const object = await (kind === "ConfigMap"
      ? getOrUndefined(api, CONFIG_MAPS, call)
      : getOrUndefined(api, SECRETS, call));
    const before = this.known;
    // A later request may have been answered earlier.
    if (before !== undefined && before.at > at) return before.object;
    this.known = { object, at };
    const isSame =
      before !== undefined &&
      before.object?.metadata.uid === object?.metadata.uid &&
      before.object?.metadata.resourceVersion === object?.metadata.resourceVersion;
    if (!isSame) this.tell(before !== undefined);
    return object;
  }

  /** A first reader gets the object itself: that is no change. */
  private tell(isChange: boolean): void {
    this.deps.changed?.();
    if (isChange) this.listeners.call();
  }

  private askLater(): void {
    if (this.timer !== undefined || this.scope.signal.aborted || this.listeners.isEmpty) return;
    this.timer = this.deps.clock.after(this.of.times().everyMs, () => {
      this.timer = undefined;
      // Retried next time; the known version stays.
      const asked = this.known?.object?.immutable === true ? Promise.resolve(undefined) : (this.asking ?? this.ask());
      asked.catch(() => undefined).finally(() => this.askLater());
    });
  }

  private stopAsking(): void {
    this.timer?.cancel();
    this.timer = undefined;
  }
}
