import {
  type ApiError,
  CONFIG_MAPS,
  type KubeApi,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  Reflector,
  SECRETS,
  SERVICE_ACCOUNTS,
  VOLUME_ATTACHMENTS,
} from "../adapters/kubeapi/index.ts";
import { type Abortable, AbortScope } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";
import type { ConfigMap, PersistentVolumeClaim, Pod, Secret } from "../model/generated/types.ts";
import {
  type ObjectKind,
  type ObjectKinds,
  type ObjectRef,
  type ObjectSource,
  objectKey,
  type ReadOptions,
} from "../model/object-source.ts";
import { isStaticPod } from "../model/pod-facts.ts";
import { podObjects } from "../model/pod-objects.ts";
import { ApiCsiDrivers } from "./api-csi-drivers.ts";
import { getOrUndefined } from "./api-get.ts";
import { PolledObject, type PollTimes } from "./api-polled-object.ts";
import { GroupedReads } from "./grouped-reads.ts";

/** Timeout of a first read, in milliseconds; it is retried meanwhile. */
const FIRST_READ_MS = 3000;

type Followed = ConfigMap | Secret;
type FollowedRef = ObjectRef<"ConfigMap" | "Secret">;

interface EntryDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  /** Called after each change. */
  changed?(): void;
  /** The object of a checkpoint. */
  fallback?(): Followed | undefined;
}

/** The cache entry of one object. */
type Entry = WatchedObject | PolledObject;

/** One object, watched as long as a pod of this node refers to it. */
class WatchedObject {
  private readonly reflector: Reflector<Followed>;
  private readonly scope: AbortScope;
  private error: ApiError | undefined;
  private kept: Followed | undefined;
  private readonly waiters = new Set<() => void>();
  private readonly listeners = new Listeners();

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

  /** Returns the newest version; undefined if it does not exist. Rejects if it cannot be read in time. */
  async read({ signal }: Abortable): Promise<Followed | undefined> {
    if (this.reflector.hasSynced) return this.current;
    try {
      await this.firstRead(signal);
      return this.current;
    } catch (error) {
      signal.throwIfAborted();
      // An unavailable server does not change the object: the checkpointed version is used.
      const isUnavailable = this.error === undefined || this.error.isRetryable;
      const known = isUnavailable ? this.deps.fallback?.() : undefined;
      if (known === undefined) throw error;
      return known;
    }
  }

  /** The newest known version, without a request. */
  peek(): Followed | undefined {
    return this.current;
  }

  onChange(fn: () => void, options: Abortable): void {
    this.listeners.add(fn, options);
  }

  /** Ends the watch. */
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
      // An immutable object can only be deleted and recreated, and then the pod is another one, too.
      this.kept = object;
      this.scope.abort();
    }
    this.deps.changed?.();
    this.listeners.call();
  }
}

/**
 * ConfigMaps and Secrets of the API server: one watch per object while a pod of this node refers to it, or polled if
 * configured so. CSIDrivers are watched together, other kinds are fetched at each use.
 */
export class ApiObjects implements ObjectSource {
  private readonly entries = new Map<string, Entry>();
  private readonly referenced = new WeakMap<Pod, readonly FollowedRef[]>();
  private readonly kept = new Map<string, Followed>();
  private readonly csiDrivers: ApiCsiDrivers;
  private readonly claims: GroupedReads<PersistentVolumeClaim>;

  constructor(
    private readonly deps: {
      readonly api: Pick<KubeApi, "get" | "getTogether" | "list" | "watch">;
      readonly clock: Clock;
      /** Called after each change of a watched object. */
      changed?(): void;
      /** Set if objects are polled instead of watched. */
      readonly poll?: () => PollTimes;
    },
    private readonly signal: AbortSignal,
  ) {
    this.csiDrivers = new ApiCsiDrivers(deps, signal);
    this.claims = new GroupedReads(deps.api, PERSISTENT_VOLUME_CLAIMS, signal);
  }

  /** Takes the desired pods: objects that none of them refers to are no longer watched. */
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

  /** A pod is new or changed: the objects that it refers to are fetched anew. */
  private expire(refs: readonly FollowedRef[]): void {
    for (const ref of refs) {
      const entry = this.entries.get(objectKey(ref));
      if (entry instanceof PolledObject) entry.expire();
    }
  }

  /** Restores the objects of a checkpoint, used while the server is unavailable. */
  restore(kind: FollowedRef["kind"], objects: readonly Followed[]): void {
    for (const object of objects) {
      const { namespace = "", name = "" } = object.metadata;
      this.kept.set(objectKey({ kind, namespace, name }), object);
    }
  }

  /** Returns the known objects that these pods refer to. */
  known(kind: FollowedRef["kind"], pods: readonly Pod[]): readonly Followed[] {
    const keys = new Set(
      pods
        .flatMap(podObjects)
        .filter((ref) => ref.kind === kind)
        .map(objectKey),
    );
    return [...keys].sort().flatMap((key) => this.entries.get(key)?.peek() ?? this.kept.get(key) ?? []);
  }

  async get<K extends ObjectKind>(ref: ObjectRef<K>, options: ReadOptions): Promise<ObjectKinds[K] | undefined> {
    const isWatched = isFollowed(ref) && options.isOnce !== true;
    const found = isWatched ? await this.entry(ref).read(options) : await this.fetch(ref, options);
    // The kind of the reference decides which resource was read.
    return found as ObjectKinds[K] | undefined;
  }

  onChange(ref: ObjectRef, fn: () => void, options: Abortable): void {
    // A node may not watch claims, volumes and service accounts: a waiting caller reads again.
    if (isFollowed(ref)) this.entry(ref).onChange(fn, options);
    else if (ref.kind === "CSIDriver") this.csiDrivers.onChange(ref.name, fn, options);
  }

  private fetch(ref: ObjectRef, options: Abortable): Promise<unknown> {
    const { name, namespace } = ref;
    const { api } = this.deps;
    switch (ref.kind) {
      case "Secret":
        return getOrUndefined(api, SECRETS, { at: { namespace, name }, ...options });
      case "ConfigMap":
        return getOrUndefined(api, CONFIG_MAPS, { at: { namespace, name }, ...options });
      case "PersistentVolume":
        return getOrUndefined(api, PERSISTENT_VOLUMES, { at: { name }, ...options });
      case "ServiceAccount":
        return getOrUndefined(api, SERVICE_ACCOUNTS, { at: { namespace, name }, ...options });
      case "CSIDriver":
        return this.csiDrivers.get(name, options);
      case "VolumeAttachment":
        return getOrUndefined(api, VOLUME_ATTACHMENTS, { at: { name }, ...options });
      default:
        return this.claims.get({ namespace, name }, options);
    }
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
