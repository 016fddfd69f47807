import {
  type ApiError,
  CONFIG_MAPS,
  type KubeApi,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  Reflector,
  SECRETS,
} from "../adapters/kubeapi/index.ts";
import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { ConfigMap, Pod, Secret } from "../model/generated/types.ts";
import {
  type ObjectKind,
  type ObjectKinds,
  type ObjectRef,
  type ObjectSource,
  objectKey,
} from "../model/object-source.ts";
import { isStaticPod } from "../model/pod-facts.ts";
import { podObjects } from "../model/pod-objects.ts";
import { getOrUndefined } from "./api-get.ts";
import { PolledObject, type PollTimes } from "./api-polled-object.ts";

/** How long a first read waits before it says why it fails; meanwhile it is tried again and again. */
const FIRST_READ_MS = 3000;

type Followed = ConfigMap | Secret;
type FollowedRef = ObjectRef<"ConfigMap" | "Secret">;

interface EntryDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  /** Told after each change. */
  changed?(): void;
  /** What an earlier agent kept of the object. */
  fallback?(): Followed | undefined;
}

/** What is held of one object. */
type Entry = WatchedObject | PolledObject;

/** One object, watched as long as a pod of this node refers to it. */
class WatchedObject {
  private readonly reflector: Reflector<Followed>;
  private readonly scope: AbortScope;
  private error: ApiError | undefined;
  private kept: Followed | undefined;
  private readonly waiters = new Set<() => void>();
  private readonly listeners = new Set<{ readonly fn: () => void }>();

  constructor(
    private readonly deps: EntryDeps,
    ref: FollowedRef,
    signal: AbortSignal,
  ) {
    this.scope = new AbortScope([signal]);
    const { name, namespace } = ref;
    this.reflector = new Reflector<Followed>(deps, {
      resource: ref.kind === "ConfigMap" ? CONFIG_MAPS : SECRETS,
      // The Node authorizer allows a watch of exactly one object by its name, and no other.
      select: { namespace, fieldSelector: `metadata.name=${name}` },
      firstList: "latest",
      onChange: () => this.changed(),
      onSync: () => this.synced(),
      onError: (error) => {
        this.error = error;
      },
    });
    void this.reflector.run(this.scope).finally(() => this.scope.dispose());
  }

  /** The newest version; undefined when there is none. Rejects when that cannot be known for a while. */
  async read({ signal }: Abortable): Promise<Followed | undefined> {
    if (this.reflector.hasSynced) return this.current;
    try {
      await this.firstRead(signal);
      return this.current;
    } catch (error) {
      signal.throwIfAborted();
      // A server that cannot be reached says nothing about the object: what was known last is still the best.
      const isAway = this.error === undefined || this.error.isRetryable;
      const known = isAway ? this.deps.fallback?.() : undefined;
      if (known === undefined) throw error;
      return known;
    }
  }

  /** The newest version that is known, without asking. */
  peek(): Followed | undefined {
    return this.current;
  }

  onChange(fn: () => void, { signal }: Abortable): void {
    if (signal.aborted) return;
    const listener = { fn };
    this.listeners.add(listener);
    signal.addEventListener("abort", () => void this.listeners.delete(listener), { once: true });
  }

  /** Whoever listens goes on listening: another entry takes the listeners over. */
  close(): void {
    this.scope.abort();
  }

  private get current(): Followed | undefined {
    return this.kept ?? [...this.reflector.objects.values()][0];
  }

  private async firstRead(signal: AbortSignal): Promise<void> {
    const scope = new AbortScope([signal]);
    try {
      const limit = this.deps.clock.sleep(FIRST_READ_MS, scope).then(
        () => "late",
        () => "late",
      );
      const synced = new Promise<string>((resolve) => {
        this.waiters.add(() => resolve("synced"));
      });
      const outcome = await Promise.race([limit, synced]);
      signal.throwIfAborted();
      if (outcome === "synced") return;
      throw this.error ?? new Error("read object: API server is unavailable");
    } finally {
      scope.abort();
      scope.dispose();
    }
  }

  private synced(): void {
    for (const waiter of this.waiters) waiter();
    this.waiters.clear();
  }

  private changed(): void {
    const object = this.current;
    if (object?.immutable === true) {
      // It can only be removed and made anew, and then the pod is another one, too.
      this.kept = object;
      this.scope.abort();
    }
    this.deps.changed?.();
    for (const listener of [...this.listeners]) listener.fn();
  }
}

/**
 * ConfigMaps and Secrets of the API server, one watch an object while a pod of this node refers to it, or asked for now
 * and then where the configuration wants that; claims and volumes are asked for each time.
 */
export class ApiObjects implements ObjectSource {
  private readonly entries = new Map<string, Entry>();
  private readonly referenced = new WeakMap<Pod, readonly FollowedRef[]>();
  private readonly kept = new Map<string, Followed>();

  constructor(
    private readonly deps: {
      readonly api: Pick<KubeApi, "get" | "list" | "watch">;
      readonly clock: Clock;
      /** Told after each change of an object that is followed. */
      changed?(): void;
      /** Set where objects are asked for instead of watched. */
      readonly poll?: () => PollTimes;
    },
    private readonly signal: AbortSignal,
  ) {}

  /** The pods that are wanted now: what none of them refers to is no longer watched. */
  wanted(pods: readonly Pod[]): void {
    const keys = new Set<string>();
    for (const pod of pods) {
      if (isStaticPod(pod)) continue;
      let refs = this.referenced.get(pod);
      if (refs === undefined) {
        refs = podObjects(pod);
        this.referenced.set(pod, refs);
        this.expire(refs);
      }
      for (const ref of refs) keys.add(objectKey(ref));
    }
    for (const [key, entry] of this.entries) {
      if (keys.has(key)) continue;
      this.entries.delete(key);
      entry.close();
    }
  }

  /** A pod is new, or another version of itself: what it is made with is asked for anew. */
  private expire(refs: readonly FollowedRef[]): void {
    for (const ref of refs) {
      const entry = this.entries.get(objectKey(ref));
      if (entry instanceof PolledObject) entry.expire();
    }
  }

  /** Objects that an earlier agent kept, for as long as the server cannot be asked. */
  restore(kind: FollowedRef["kind"], objects: readonly Followed[]): void {
    for (const object of objects) {
      const { namespace = "", name = "" } = object.metadata;
      this.kept.set(objectKey({ kind, namespace, name }), object);
    }
  }

  /** What is known of the objects that these pods refer to. */
  known(kind: FollowedRef["kind"], pods: readonly Pod[]): readonly Followed[] {
    const keys = new Set(
      pods
        .flatMap(podObjects)
        .filter((ref) => ref.kind === kind)
        .map(objectKey),
    );
    return [...keys].sort().flatMap((key) => this.entries.get(key)?.peek() ?? this.kept.get(key) ?? []);
  }

  async get<K extends ObjectKind>(ref: ObjectRef<K>, options: Abortable): Promise<ObjectKinds[K] | undefined> {
    const found = isFollowed(ref) ? await this.entry(ref).read(options) : await this.ask(ref, options);
    // The kind of the reference decides which resource was asked.
    return found as ObjectKinds[K] | undefined;
  }

  onChange(ref: ObjectRef, fn: () => void, options: Abortable): void {
    // A node may not watch claims and volumes: whoever waits for one asks again.
    if (isFollowed(ref)) this.entry(ref).onChange(fn, options);
  }

  private ask(ref: ObjectRef, options: Abortable): Promise<unknown> {
    const { name, namespace } = ref;
    return ref.kind === "PersistentVolume"
      ? getOrUndefined(this.deps.api, PERSISTENT_VOLUMES, { at: { name }, ...options })
      : getOrUndefined(this.deps.api, PERSISTENT_VOLUME_CLAIMS, { at: { namespace, name }, ...options });
  }

  private entry(ref: FollowedRef): Entry {
    const key = objectKey(ref);
    const known = this.entries.get(key);
    if (known !== undefined) return known;
    const deps = { ...this.deps, fallback: () => this.kept.get(key) };
    const { poll } = this.deps;
    const made =
      poll === undefined
        ? new WatchedObject(deps, ref, this.signal)
        : new PolledObject(deps, { ref, times: poll }, this.signal);
    this.entries.set(key, made);
    return made;
  }
}

function isFollowed(ref: ObjectRef): ref is FollowedRef {
  return ref.kind === "ConfigMap" || ref.kind === "Secret";
}
