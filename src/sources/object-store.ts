import type { Abortable } from "../lib/abort.ts";
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
  private readonly listeners = new Map<string, Set<{ readonly fn: () => void }>>();

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
      if (before.get(key)?.text !== after.get(key)?.text) this.notify(key);
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

  onChange(ref: ObjectRef, fn: () => void, { signal }: Abortable): void {
    if (signal.aborted) return;
    const key = objectKey(ref);
    const all = this.listeners.get(key) ?? new Set();
    const listener = { fn };
    this.listeners.set(key, all.add(listener));
    const forget = (): void => {
      all.delete(listener);
      if (all.size === 0 && this.listeners.get(key) === all) this.listeners.delete(key);
    };
    signal.addEventListener("abort", forget, { once: true });
  }

  private notify(key: string): void {
    for (const listener of [...(this.listeners.get(key) ?? [])]) listener.fn();
  }
}
