import type { Abortable } from "../lib/abort.ts";
import { Listeners } from "../lib/listeners.ts";
import {
  type ObjectKind,
  type ObjectKinds,
  type ObjectRef,
  type ObjectSource,
  objectKey,
} from "../model/object-source.ts";
import type { SourceObject } from "./snapshot.ts";

interface StoredObject {
  readonly object: SourceObject["object"];
  /** Distinguishes a change from the same content read again. */
  readonly text: string;
}

/** The ConfigMaps and Secrets of manifests, for an agent without an API server; written by the snapshots of sources. */
export class ObjectStore implements ObjectSource {
  private readonly bySource = new Map<string, ReadonlyMap<string, StoredObject>>();
  private readonly listeners = new Map<string, Listeners>();

  /** Replaces the objects of a source and notifies listeners of changed ones. The first of two sources wins. */
  apply(source: string, objects: readonly SourceObject[]): void {
    const before = this.bySource.get(source) ?? new Map<string, StoredObject>();
    const after = new Map(
      objects.map(({ kind, object }): [string, StoredObject] => [
        objectKey({ kind, namespace: object.metadata.namespace ?? "", name: object.metadata.name ?? "" }),
        { object, text: JSON.stringify(object) },
      ]),
    );
    this.bySource.set(source, after);
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      if (before.get(key)?.text !== after.get(key)?.text) this.listeners.get(key)?.call();
    }
  }

  get<K extends ObjectKind>(ref: ObjectRef<K>, _options?: Abortable): Promise<ObjectKinds[K] | undefined> {
    const key = objectKey(ref);
    for (const objects of this.bySource.values()) {
      const kept = objects.get(key);
      // The key begins with the kind, so that its object is of that kind.
      if (kept !== undefined) return Promise.resolve(kept.object as ObjectKinds[K]);
    }
    return Promise.resolve(undefined);
  }

  onChange(ref: ObjectRef, fn: () => void, options: Abortable): void {
    if (options.signal.aborted) return;
    const key = objectKey(ref);
    const listeners = this.listeners.get(key) ?? new Listeners(() => this.listeners.delete(key));
    this.listeners.set(key, listeners);
    listeners.add(fn, options);
  }
}
