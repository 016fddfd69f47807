import { isDeepStrictEqual } from "node:util";
import type { ApiObject, Kind, UpdateSubresource } from "../kinds/kind.ts";
import { recordUpdate } from "../ownership/field-owner.ts";
import { invalid } from "../status/field-error.ts";
import { badRequest, conflict, invalidObject, notFound } from "../status/status-error.ts";
import { type JsonObject, StoredObject, type Transaction } from "../store/index.ts";
import { kindForm, type OperationDeps, storedForm, type Target, type WriteRequest, writeContext } from "./context.ts";
import { insertObject, runWrite, withinLimit } from "./create.ts";
import { decodeObject, type ParsedBody } from "./decode-object.ts";
import { inNamespace, plain, preparedForUpdate, statusUpdate } from "./prepare.ts";

/** The outcome of an update. */
export interface Updated {
  readonly object: StoredObject;
  readonly isCreated: boolean;
}

/** An update through a sub-resource; the name is empty for the object itself. */
export interface UpdatePath {
  readonly name: string;
  /** False if ownership has no time, as with `scale`. */
  readonly isTimed?: boolean;
  readonly subresource: UpdateSubresource<ApiObject> | undefined;
}

/** The way of an update by the name of its sub-resource; undefined if the kind has none of that name. */
export function updatePath(kind: Kind, name: string): UpdatePath | undefined {
  if (name === "") return { name, subresource: undefined };
  const subresource = name === "status" ? statusUpdate(kind) : kind.updates?.[name];
  return subresource && { name, subresource };
}

/** Replaces an object. Rejects with `StatusError` or `LogError`. */
export async function replaceObject(
  deps: OperationDeps,
  target: Target & { readonly path: UpdatePath },
  { body, request }: { readonly body: ParsedBody; readonly request: WriteRequest },
): Promise<Updated> {
  const { kind, name, namespace } = target;
  const decoded = inNamespace(kind, decodeObject(kind, body, request), namespace);
  const given = decoded.metadata.name ?? "";
  if (given === "") throw badRequest("name must be provided");
  if (given !== name)
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
  return runWrite(deps, request, (transaction) => {
    const existing = transaction.get(kind.collection, { namespace, name });
    if (existing === undefined) {
      if (!kind.createsOnUpdate || target.path.name !== "") throw notFound(kind.resource, name);
      const { resourceVersion: _version, ...metadata } = decoded.metadata;
      const fresh = { ...decoded, metadata };
      const object = insertObject(deps, { ...target, transaction }, { decoded: fresh, request });
      return { object, isCreated: true };
    }
    const object = changeObject(deps, { ...target, transaction, existing }, { next: decoded, request });
    return { object, isCreated: false };
  });
}

interface Change {
  readonly next: ApiObject;
  readonly request: WriteRequest;
  /** True if `managedFields` are there already. */
  readonly owned?: boolean;
}

/** The whole way of a changed object into a transaction. Returns the existing one if nothing changed. */
export function changeObject(
  deps: OperationDeps,
  target: Target & { readonly path: UpdatePath; readonly transaction: Transaction; readonly existing: StoredObject },
  { next, request, owned }: Change,
): StoredObject {
  const { kind, transaction, existing, path } = target;
  const context = writeContext(deps, transaction, request);
  const stored = existing.parse();
  const old = kindForm(kind, stored);
  checkPreconditions(kind, next, old);
  const tracked = owned
    ? next
    : withOwner({ kind, path }, { next, old }, { manager: request.manager, now: context.now });
  const prepared = preparedForUpdate({ kind, subresource: path.subresource }, { next: tracked, old }, context);
  const versioned = {
    ...prepared,
    metadata: { ...prepared.metadata, resourceVersion: old.metadata.resourceVersion ?? "" },
  };
  const tree = storedForm(kind, versioned);
  if (isFinished(kind, versioned, old)) return removed(transaction, kind, { existing, tree });
  if (isDeepStrictEqual(tree, stored)) return existing;
  const place = { namespace: existing.namespace, name: existing.name };
  if (request.isDryRun) return new StoredObject(place, JSON.stringify(tree), existing.revision);
  return withinLimit(transaction.put(kind.collection, place, tree));
}

/** The UID and the version that a client names must be those of the object. */
function checkPreconditions(kind: Kind, next: ApiObject, old: ApiObject): void {
  const { name = "", uid = "", resourceVersion = "" } = old.metadata;
  const given = next.metadata;
  if (given.uid !== undefined && given.uid !== uid) {
    throw conflict(kind.resource, name, uidProblem(kind, { given: given.uid, metadata: old.metadata }));
  }
  const version = given.resourceVersion ?? "";
  if (version === "" || version === "0") {
    if (!kind.needsVersion) return;
    const error = invalid("metadata.resourceVersion", 0, "must be specified for an update");
    throw invalidObject({ group: kind.resource.group, kind: kind.resource.plural }, name, [error]);
  }
  if (version !== resourceVersion) throw conflict(kind.resource, name);
}

/** In the words of Kubernetes' storage. */
function uidProblem(
  { resource }: Kind,
  { given, metadata }: { readonly given: string; readonly metadata: ApiObject["metadata"] },
): string {
  const { namespace, name = "", uid = "" } = metadata;
  const key = ["", "registry", resource.plural, ...(namespace ? [namespace] : []), name].join("/");
  const why = `Precondition failed: UID in precondition: ${given}, UID in object meta: ${uid}`;
  return `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: ${why}`;
}

function withOwner(
  { kind, path }: { readonly kind: Kind; readonly path: UpdatePath },
  { next, old }: { readonly next: ApiObject; readonly old: ApiObject },
  { manager, now }: { readonly manager: string; readonly now: string },
): ApiObject {
  const { name: subresource, isTimed = true } = path;
  const time = isTimed ? now : undefined;
  const write = { type: kind.schemaType, apiVersion: kind.apiVersion, manager, subresource, now: time };
  // Only managedFields change.
  return recordUpdate(old as unknown as JsonObject, plain(next) as JsonObject, write) as unknown as ApiObject;
}

/** True if an object that is being deleted has lost its last finalizer. */
function isFinished(kind: Kind, next: ApiObject, old: ApiObject): boolean {
  if (kind.isHeld?.(next) === true) return false;
  if ((next.metadata.finalizers ?? []).length > 0 || old.metadata.deletionTimestamp === undefined) return false;
  return (old.metadata.deletionGracePeriodSeconds ?? 0) === 0;
}

/** Removes the object in the state of its last change. */
function removed(
  transaction: Transaction,
  kind: Kind,
  { existing, tree }: { readonly existing: StoredObject; readonly tree: JsonObject },
): StoredObject {
  const place = { namespace: existing.namespace, name: existing.name };
  transaction.put(kind.collection, place, tree);
  return transaction.remove(kind.collection, place);
}
