import type { Abortable } from "../lib/abort.ts";
import {
  type ObjectKind,
  type ObjectKinds,
  type ObjectRef,
  type ObjectSource,
  objectKey,
} from "../model/object-source.ts";
import type { SourceObject } from "./snapshot.ts";

interface Kept {
  readonly object: SourceObject["object"];
  /** To tell a change from the same content read again. */
  readonly text: string;
}

/** The ConfigMaps and Secrets of manifests, for an agent without an API server. The sources write it, by snapshots. */
export class ObjectStore implements ObjectSource {
  private readonly bySource = new Map<string, ReadonlyMap<string, Kept>>();
  private readonly listeners = new Map<string, Set<{ readonly fn: () => void }>>();

  /** Takes over all objects of a source and tells of those that are now others. Of two sources the first counts. */
  apply(source: string, objects: readonly SourceObject[]): void {
    const before = this.bySource.get(source) ?? new Map<string, Kept>();
    const after = new Map(
      objects.map(({ kind, object }): [string, Kept] => [
        objectKey({ kind, namespace: object.metadata.namespace ?? "", name: object.metadata.name ?? "" }),
        { object, text: JSON.stringify(object) },
      ]),
    );
    this.bySource.set(source, after);
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      if (before.get(key)?.text !== after.get(key)?.text) this.tell(key);
    }
  }

  get<K extends ObjectKind>(ref: ObjectRef<K>, _options?: Abortable): Promise<ObjectKinds[K] | undefined> {
    const key = objectKey(ref);
    for (const objects of this.bySource.values()) {
      const kept = objects.get(key);
      // The key begins with the kind, so that what is kept under it is of that kind.
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

  private tell(key: string): void {
    for (const listener of [...(this.listeners.get(key) ?? [])]) listener.fn();
  }
}
