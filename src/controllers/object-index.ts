import type { KubeObject } from "../adapters/kubeapi/index.ts";

/** The reference of an object to the one that manages it. */
export function controllerOf({ metadata }: KubeObject) {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/** `namespace/name`, or a name. */
export function keyOf({ metadata }: KubeObject): string {
  const { namespace, name = "" } = metadata;
  return namespace ? `${namespace}/${name}` : name;
}

/** What `keyOf` made a key of; the namespace is empty for an object without one. */
export function partsOf(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, Math.max(slash, 0)), name: key.slice(slash + 1) };
}

type Group<T> = Map<string, Map<string, T>>;

/** Objects by name, by namespace, by owner, and those that nobody manages by namespace. */
export class ObjectIndex<T extends KubeObject> {
  private readonly objects = new Map<string, T>();
  private readonly namespaces: Group<T> = new Map();
  private readonly owners: Group<T> = new Map();
  private readonly unmanaged: Group<T> = new Map();

  get(key: string): T | undefined {
    return this.objects.get(key);
  }

  all(): readonly T[] {
    return [...this.objects.values()];
  }

  inNamespace(namespace: string): readonly T[] {
    return valuesOf(this.namespaces, namespace);
  }

  /** Objects with a reference to the owner of this UID. */
  ownedBy(uid: string): readonly T[] {
    return valuesOf(this.owners, uid);
  }

  /** Objects of a namespace that have no controller. */
  withoutController(namespace: string): readonly T[] {
    return valuesOf(this.unmanaged, namespace);
  }

  put(object: T): void {
    const key = keyOf(object);
    this.remove(key);
    this.objects.set(key, object);
    const { namespace = "", ownerReferences = [] } = object.metadata;
    add(this.namespaces, namespace, { key, object });
    for (const { uid } of ownerReferences) add(this.owners, uid, { key, object });
    if (controllerOf(object) === undefined) add(this.unmanaged, namespace, { key, object });
  }

  remove(key: string): void {
    const known = this.objects.get(key);
    if (known === undefined) return;
    this.objects.delete(key);
    const { namespace = "", ownerReferences = [] } = known.metadata;
    drop(this.namespaces, namespace, key);
    for (const { uid } of ownerReferences) drop(this.owners, uid, key);
    drop(this.unmanaged, namespace, key);
  }
}

function valuesOf<T>(groups: Group<T>, group: string): readonly T[] {
  return [...(groups.get(group)?.values() ?? [])];
}

function add<T>(groups: Group<T>, group: string, { key, object }: { readonly key: string; readonly object: T }): void {
  const known = groups.get(group);
  if (known === undefined) groups.set(group, new Map([[key, object]]));
  else known.set(key, object);
}

function drop<T>(groups: Group<T>, group: string, key: string): void {
  const known = groups.get(group);
  known?.delete(key);
  if (known?.size === 0) groups.delete(group);
}
