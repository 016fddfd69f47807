/** The stored objects of the scripted API server: versions, history, selectors, preconditions. Decides; no network. */

export interface StoredObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: Readonly<Record<string, unknown>> & {
    readonly name: string;
    readonly namespace?: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  readonly [field: string]: unknown;
}

export interface StoredEvent {
  readonly version: number;
  readonly collection: string;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: StoredObject;
}

/** An answer that is no success. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    readonly reason: string,
    message: string,
  ) {
    super(message);
  }
}

export interface Place {
  /** Group and plural: `v1/pods`. */
  readonly collection: string;
  readonly namespace: string;
  readonly name: string;
}

type Json = Record<string, unknown>;

export class FakeObjects {
  private readonly objects = new Map<string, StoredObject>();
  private history: StoredEvent[] = [];
  private compacted = 0;
  private uids = 0;
  version = 100;
  private readonly listeners = new Set<(event: StoredEvent) => void>();

  get(place: Place): StoredObject {
    const found = this.objects.get(keyOf(place));
    if (found === undefined) throw new Refusal(404, "NotFound", `${place.collection} "${place.name}" not found`);
    return found;
  }

  list(place: Place, fieldSelector: string): StoredObject[] {
    const prefix = keyOf({ ...place, name: "" });
    return [...this.objects]
      .filter(([key, object]) => {
        const isInside = place.namespace === "" ? key.startsWith(`${place.collection}|`) : key.startsWith(prefix);
        return isInside && matches(object, fieldSelector);
      })
      .map(([, object]) => object);
  }

  create(place: Place, body: Json): StoredObject {
    const metadata = (body.metadata ?? {}) as Json;
    const name = String(metadata.name ?? `${String(metadata.generateName ?? "")}x${++this.uids}`);
    const at = { ...place, name };
    if (this.objects.has(keyOf(at)))
      throw new Refusal(409, "AlreadyExists", `${place.collection} "${name}" already exists`);
    if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name) && !place.collection.endsWith("signingrequests"))
      throw new Refusal(422, "Invalid", `metadata.name: Invalid value: "${name}"`);
    const namespace = place.namespace === "" ? {} : { namespace: place.namespace };
    return this.store(at, "ADDED", {
      ...body,
      metadata: { ...metadata, ...namespace, name, uid: `uid-${++this.uids}` },
    });
  }

  /** A replacement, of everything or of one sub-resource. */
  replace(place: Place, body: Json, subresource: string): StoredObject {
    const old = this.get(place);
    const metadata = (body.metadata ?? {}) as Json;
    const wanted = metadata.resourceVersion;
    if (wanted !== undefined && wanted !== old.metadata.resourceVersion)
      throw new Refusal(
        409,
        "Conflict",
        "the object has been modified; please apply your changes to the latest version",
      );
    if (metadata.uid !== undefined && metadata.uid !== old.metadata.uid)
      throw new Refusal(409, "Conflict", `Precondition failed: UID in precondition: ${String(metadata.uid)}`);
    const next = subresource === "status" ? { ...old, status: body.status } : body;
    return this.store(place, "MODIFIED", {
      ...next,
      metadata: { ...(subresource === "status" ? old.metadata : metadata), ...identityOf(old) },
    });
  }

  delete(place: Place, options: Json): StoredObject {
    const old = this.get(place);
    const wanted = ((options.preconditions ?? {}) as Json).uid;
    if (wanted !== undefined && wanted !== old.metadata.uid)
      throw new Refusal(409, "Conflict", `Precondition failed: UID in precondition: ${String(wanted)}`);
    const isGraceful =
      place.collection === "v1/pods" && options.gracePeriodSeconds !== 0 && "nodeName" in ((old.spec ?? {}) as Json);
    if (isGraceful) {
      const metadata = { ...old.metadata, deletionTimestamp: "2026-01-01T00:00:30Z", deletionGracePeriodSeconds: 30 };
      return this.store(place, "MODIFIED", { ...old, metadata });
    }
    this.objects.delete(keyOf(place));
    return this.remember(place, "DELETED", {
      ...old,
      metadata: { ...old.metadata, resourceVersion: String(++this.version) },
    });
  }

  /** Refuses a version that is older than the history. */
  checkVersion(since: number): void {
    if (since < this.compacted)
      throw new Refusal(410, "Expired", `too old resource version: ${since} (${this.compacted})`);
  }

  /** Calls `fn` for what comes after `since`, first with what is in the history. The answer ends it. */
  follow(since: number, fn: (event: StoredEvent) => void): () => void {
    for (const event of this.history) if (event.version > since) fn(event);
    this.listeners.add(fn);
    return () => void this.listeners.delete(fn);
  }

  /** Forgets the history: watches from before end with 410. */
  compact(): void {
    this.history = [];
    this.compacted = ++this.version;
  }

  private store(place: Place, type: "ADDED" | "MODIFIED", body: Json): StoredObject {
    const metadata = { ...(body.metadata as Json), resourceVersion: String(++this.version) };
    const managed = { ...metadata, managedFields: [{ manager: "fake", fieldsV1: {} }] };
    // Made from a stored object or from `create`, which adds the identity.
    const object = { ...body, metadata: managed } as unknown as StoredObject;
    this.objects.set(keyOf(place), object);
    return this.remember(place, type, object);
  }

  private remember({ collection }: Place, type: StoredEvent["type"], object: StoredObject): StoredObject {
    const event = { version: this.version, collection, type, object };
    this.history.push(event);
    for (const listener of [...this.listeners]) listener(event);
    return object;
  }
}

function identityOf({ metadata }: StoredObject): Json {
  const { name, namespace, uid } = metadata;
  return { name, uid, ...(namespace !== undefined && { namespace }) };
}

function keyOf({ collection, namespace, name }: Place): string {
  return `${collection}|${namespace}/${name}`;
}

/** `metadata.name=x,spec.nodeName=y`; an empty selector takes all. */
export function matches(object: StoredObject, fieldSelector: string): boolean {
  return fieldSelector.split(",").every((term) => {
    const [path = "", wanted = ""] = term.split("=");
    if (path === "") return true;
    const value = path.split(".").reduce<unknown>((at, part) => (at as Json | undefined)?.[part], object);
    return value === wanted;
  });
}

/** RFC 7386; also stands for strategic merge and apply, whose lists the suite does not use. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Json = typeof target === "object" && target !== null ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/** Lists that a strategic merge patch merges by a key; others are replaced. */
const MERGED_BY: Readonly<Record<string, string>> = { conditions: "type", podIPs: "ip", hostIPs: "ip" };

/** A strategic merge patch, as far as status needs it: lists with keys are merged, directives about their order ignored. */
export function strategicPatch(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Json = typeof target === "object" && target !== null ? { ...target } : {};
  for (const [name, value] of Object.entries(patch)) {
    if (name.startsWith("$")) continue;
    const key = MERGED_BY[name];
    if (value === null) delete result[name];
    else if (key === undefined || !Array.isArray(value)) result[name] = strategicPatch(result[name], value);
    else result[name] = mergedList(result[name], value as Json[], key);
  }
  return result;
}

function mergedList(before: unknown, changes: readonly Json[], key: string): Json[] {
  const isReplaced = changes.some(({ $patch }) => $patch === "replace");
  const kept = Array.isArray(before) && !isReplaced ? (before as Json[]) : [];
  const found = new Map(kept.map((one) => [one[key], one]));
  for (const change of changes) {
    if (change.$patch === "replace") continue;
    if (change.$patch === "delete") found.delete(change[key]);
    else found.set(change[key], strategicPatch(found.get(change[key]), change) as Json);
  }
  return [...found.values()];
}

/** The operations `add`, `replace`, `remove` and `test` of RFC 6902, on objects. */
export function jsonPatch(target: StoredObject, operations: unknown): unknown {
  const result = structuredClone(target) as unknown as Json;
  for (const { op, path, value } of operations as { op: string; path: string; value?: unknown }[]) {
    const parts = path
      .slice(1)
      .split("/")
      .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = parts.pop() ?? "";
    const parent = parts.reduce<Json>((at, part) => (at[part] ??= {}) as Json, result);
    if (op === "remove") delete parent[last];
    else if (op !== "test") parent[last] = value;
    else if (parent[last] !== value) throw new Refusal(422, "Invalid", `testing path ${path} failed`);
  }
  return result;
}
