import { ApiError, type KubeObject } from "./port.ts";

/** A change of one object. An object that was replaced under its name is a deletion and an addition. */
export type ObjectChange<T> =
  | { readonly kind: "added"; readonly object: T }
  | { readonly kind: "updated"; readonly object: T; readonly previous: T }
  | { readonly kind: "deleted"; readonly object: T };

/** `namespace/name`, or the name alone for cluster-scoped kinds. Throws `Garbage` without an identity. */
export function keyOf({ metadata }: KubeObject): string {
  const { namespace, name, uid, resourceVersion } = metadata;
  if (!name || !uid || !resourceVersion) throw new ApiError("Garbage", "object without name, UID or resourceVersion");
  return namespace ? `${namespace}/${name}` : name;
}

/** The objects of a reflector. Each method returns the changes that it made; a known version makes none. */
export class ReflectorStore<T extends KubeObject> {
  private objects = new Map<string, T>();

  get all(): ReadonlyMap<string, T> {
    return this.objects;
  }

  put(object: T): ObjectChange<T>[] {
    const key = keyOf(object);
    const change = difference(this.objects.get(key), object);
    if (change.length > 0) this.objects.set(key, object);
    return change;
  }

  /** Removes the object with this UID only: one that took its name later stays. The change has its last state. */
  remove(object: T): ObjectChange<T>[] {
    const key = keyOf(object);
    if (this.objects.get(key)?.metadata.uid !== object.metadata.uid) return [];
    this.objects.delete(key);
    return [{ kind: "deleted", object }];
  }

  /** Replaces all objects; deletions come first, so that names and resources are free for additions. */
  replace(objects: readonly T[]): ObjectChange<T>[] {
    const next = new Map<string, T>();
    const deleted: ObjectChange<T>[] = [];
    const others: ObjectChange<T>[] = [];
    for (const object of objects) {
      const key = keyOf(object);
      const known = this.objects.get(key);
      const changes = difference(known, object);
      // An unchanged object is kept, and the list's copy dropped.
      next.set(key, changes.length === 0 && known !== undefined ? known : object);
      for (const change of changes) (change.kind === "deleted" ? deleted : others).push(change);
    }
    for (const [key, object] of this.objects) if (!next.has(key)) deleted.push({ kind: "deleted", object });
    this.objects = next;
    return [...deleted, ...others];
  }
}

function difference<T extends KubeObject>(known: T | undefined, object: T): ObjectChange<T>[] {
  if (known === undefined) return [{ kind: "added", object }];
  if (known.metadata.uid !== object.metadata.uid) {
    return [
      { kind: "deleted", object: known },
      { kind: "added", object },
    ];
  }
  if (known.metadata.resourceVersion === object.metadata.resourceVersion) return [];
  return [{ kind: "updated", object, previous: known }];
}
