import {
  type KubeApi,
  type KubeObject,
  type ObjectChange,
  Reflector,
  type Resource,
} from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { Listeners } from "../lib/listeners.ts";
import type { Logger } from "../lib/log.ts";
import { keyOf, ObjectIndex } from "./object-index.ts";

/**
 * The objects of one resource as the API has them, a little late, with what controllers wrote themselves at once. All
 * controllers share one.
 */
export interface Informer<T> {
  get(namespace: string, name: string): T | undefined;
  /** Of one namespace, or of all. */
  list(namespace?: string): readonly T[];
  /** Objects that refer to the owner of this UID. */
  ownedBy(uid: string): readonly T[];
  /** Objects of a namespace that have no controller. */
  withoutController(namespace: string): readonly T[];
  /** Takes over what a write returned, so that the next decision knows it. */
  wrote(object: T): void;
  /** Takes over that a deletion was accepted. */
  deleted(object: T): void;
  /** True if the object is being deleted, or a deletion that `deleted` was told of is on its way. */
  isDeleting(object: T): boolean;
  /** Calls `fn` for each change, and at the beginning for each object; until the signal aborts. */
  onChange(fn: (change: ObjectChange<T>) => void, options: Abortable): void;
  /** Resolves once a complete list was received. */
  synced(options: Abortable): Promise<void>;
}

export interface InformersDeps {
  readonly api: Pick<KubeApi, "list" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** One informer for each resource that a controller asks for. */
export class Informers {
  private readonly made = new Map<string, ResourceInformer<KubeObject>>();

  constructor(
    private readonly deps: InformersDeps,
    private readonly signal: AbortSignal,
  ) {}

  /** The informer of a resource; it begins to watch with the first call. */
  of<T extends KubeObject>(resource: Resource<T>): Informer<T> {
    const key = `${resource.group}/${resource.plural}`;
    const known = this.made.get(key);
    // Under the key of a resource there is only the informer of its type.
    if (known !== undefined) return known as unknown as Informer<T>;
    const made = new ResourceInformer<T>(this.deps, resource, this.signal);
    this.made.set(key, made as unknown as ResourceInformer<KubeObject>); // reason: see above
    return made;
  }
}

class ResourceInformer<T extends KubeObject> implements Informer<T> {
  private readonly reflector: Reflector<T>;
  private readonly objects = new ObjectIndex<T>();
  private readonly changes = new Listeners<ObjectChange<T>>();
  private readonly waiting = new Set<() => void>();
  /** UIDs of objects whose deletion was accepted and not yet seen. */
  private readonly deletions = new Set<string>();
  private readonly log: Logger;
  /** The newest version that was delivered. */
  private seen = 0;

  constructor(
    { api, clock, log }: InformersDeps,
    private readonly resource: Resource<T>,
    signal: AbortSignal,
  ) {
    this.log = log;
    this.reflector = new Reflector<T>(
      { api, clock },
      {
        resource,
        select: {},
        firstList: "latest",
        onChange: (change) => this.accept(change),
        onSync: (version) => {
          this.dropUnlisted(Number(version));
          for (const done of this.waiting) done();
          this.waiting.clear();
        },
        onError: ({ code, message }) => log.debug(2, "Failed to watch objects", { kind: resource.kind, code, message }),
      },
    );
    void this.reflector.run({ signal });
  }

  get(namespace: string, name: string): T | undefined {
    return this.objects.get(namespace === "" ? name : `${namespace}/${name}`);
  }

  list(namespace?: string): readonly T[] {
    return namespace === undefined ? this.objects.all() : this.objects.inNamespace(namespace);
  }

  ownedBy(uid: string): readonly T[] {
    return this.objects.ownedBy(uid);
  }

  withoutController(namespace: string): readonly T[] {
    return this.objects.withoutController(namespace);
  }

  wrote(object: T): void {
    // What was delivered since is at least as new, also if it is that the object is gone.
    if (versionOf(object) > this.seen) this.objects.put(object);
  }

  deleted(object: T): void {
    const known = this.objects.get(keyOf(object));
    if (known?.metadata.uid !== object.metadata.uid || known?.metadata.deletionTimestamp !== undefined) return;
    this.deletions.add(object.metadata.uid ?? "");
  }

  isDeleting({ metadata }: T): boolean {
    return metadata.deletionTimestamp !== undefined || this.deletions.has(metadata.uid ?? "");
  }

  onChange(fn: (change: ObjectChange<T>) => void, options: Abortable): void {
    if (options.signal.aborted) return;
    // A bug that one object brings up must not stop the others, nor the node at each start.
    const guarded = (change: ObjectChange<T>): void => {
      try {
        fn(change);
      } catch (error) {
        this.log.error("Failed to handle a change", error, { kind: this.resource.kind, key: keyOf(change.object) });
      }
    };
    this.changes.add(guarded, options);
    for (const object of this.objects.all()) guarded({ kind: "added", object });
  }

  async synced({ signal }: Abortable): Promise<void> {
    signal.throwIfAborted();
    if (this.reflector.hasSynced) return;
    await new Promise<void>((resolve, reject) => {
      const onAbort = (): void => {
        this.waiting.delete(done);
        reject(signal.reason as Error);
      };
      const done = (): void => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      };
      this.waiting.add(done);
      signal.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** What was written, and deleted before the watch could tell of it, is known only by its absence from a list. */
  private dropUnlisted(version: number): void {
    this.seen = Math.max(this.seen, version);
    for (const object of this.objects.all()) {
      const { uid = "" } = object.metadata;
      const listed = this.reflector.objects.get(keyOf(object));
      if (listed?.metadata.uid === uid || versionOf(object) > version) continue;
      this.objects.remove(keyOf(object));
      this.deletions.delete(uid);
      this.changes.call({ kind: "deleted", object });
    }
  }

  private accept(change: ObjectChange<T>): void {
    const { kind, object } = change;
    const { uid = "", deletionTimestamp } = object.metadata;
    const version = versionOf(object);
    this.seen = Math.max(this.seen, version);
    const known = this.objects.get(keyOf(object));
    if (kind === "deleted" || deletionTimestamp !== undefined) this.deletions.delete(uid);
    if (kind === "deleted") {
      if (known?.metadata.uid === uid) this.objects.remove(keyOf(object));
    } else if (known === undefined || version >= versionOf(known)) this.objects.put(object);
    this.changes.call(change);
  }
}

function versionOf({ metadata }: KubeObject): number {
  return Number(metadata.resourceVersion ?? "0");
}
