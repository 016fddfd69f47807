import { isDeepStrictEqual } from "node:util";
import { eventLoopTurn } from "../../lib/turn.ts";
import type { DeleteOptions, ObjectMeta, Status } from "../../model/generated/types.ts";
import type { ApiObject, Kind } from "../kinds/kind.ts";
import { invalid, notSupported } from "../status/field-error.ts";
import { conflict, deletedStatus, invalidObject, notFound } from "../status/status-error.ts";
import { StoredObject, type Transaction } from "../store/index.ts";
import {
  kindForm,
  type OperationDeps,
  storedForm,
  type Target,
  timeText,
  type WriteRequest,
  writeContext,
} from "./context.ts";
import { runWrite } from "./create.ts";

/** The outcome of a deletion. */
export interface Deleted {
  /** The object as it is now, or as it was; a status if it is gone and the kind does not show it. */
  readonly answer: StoredObject | Status;
  /** False if it waits for its grace period or for finalizers. */
  readonly isGone: boolean;
}

export interface DeleteRequest {
  readonly options: DeleteOptions;
  readonly request: WriteRequest;
}

const ORPHAN = "orphan";
const FOREGROUND = "foregroundDeletion";

/** Deletes an object, or marks it as being deleted. Rejects with `StatusError` or `LogError`. */
export async function deleteObject(deps: OperationDeps, target: Target, deletion: DeleteRequest): Promise<Deleted> {
  checkDeleteOptions(deletion.options);
  return runWrite(deps, deletion.request, (transaction) => removeObject(deps, { ...target, transaction }, deletion));
}

/** Objects that are deleted in one transaction: each takes a quarter of a millisecond, and others get a turn after them. */
const PIECE = 200;

/**
 * Deletes all objects that a predicate selects, in pieces; what is created meanwhile stays. Resolves with what they were or
 * are. Rejects with the first error, and what was deleted by then is.
 */
export async function deleteCollection(
  deps: OperationDeps,
  target: Target & { readonly isSelected: (object: StoredObject) => boolean },
  deletion: DeleteRequest,
): Promise<readonly StoredObject[]> {
  checkDeleteOptions(deletion.options);
  const { kind } = target;
  const all = deps.store.list(kind.collection);
  const deleted: StoredObject[] = [];
  for (let begin = 0; begin < all.length; begin += PIECE) {
    const piece = all.slice(begin, begin + PIECE).filter((object) => target.isSelected(object));
    if (piece.length > 0) {
      const removed = await runWrite(deps, deletion.request, (transaction) =>
        piece.flatMap(({ namespace, name }) => {
          const object = transaction.get(kind.collection, { namespace, name });
          if (object === undefined || !target.isSelected(object)) return [];
          removeObject(deps, { kind, namespace, name, transaction }, deletion);
          return [object];
        }),
      );
      deleted.push(...removed);
    }
    await eventLoopTurn();
  }
  return deleted;
}

/** The whole way of a deletion in a transaction. */
function removeObject(
  deps: OperationDeps,
  { kind, namespace, name, transaction }: Target & { readonly transaction: Transaction },
  { options, request }: DeleteRequest,
): Deleted {
  const existing = transaction.get(kind.collection, { namespace, name });
  if (existing === undefined) throw notFound(kind.resource, name);
  const object = kindForm(kind, existing.parse());
  checkPreconditions(kind, object.metadata, options);
  kind.admitDelete?.(object, writeContext(deps, transaction, request));
  const now = deps.clock.now().wall;
  const finalizers = finalizersFor(kind, object.metadata, options);
  const graceful = gracefulMeta(kind, object, { requested: options.gracePeriodSeconds, now });
  if (graceful === "pending") return { answer: existing, isGone: false };
  const isHeld = finalizers.length > 0 || kind.isHeld?.(object) === true;
  const marked = graceful ?? (isHeld ? markedMeta(kind, object.metadata, now) : undefined);
  const isGraceful = (graceful?.deletionGracePeriodSeconds ?? 0) > 0;
  const store = (metadata: ObjectMeta): StoredObject => {
    const prepared = kind.prepareDelete?.({ ...object, metadata }) ?? { ...object, metadata };
    const tree = storedForm(kind, prepared);
    if (isDeepStrictEqual(tree, existing.parse())) return existing;
    if (request.isDryRun) return new StoredObject(existing, JSON.stringify(tree), existing.revision);
    return transaction.put(kind.collection, { namespace, name }, tree);
  };
  if (marked !== undefined && (isHeld || isGraceful)) {
    return { answer: store(withFinalizers(marked, finalizers)), isGone: false };
  }
  if (request.isDryRun) return { answer: answerOf(kind, existing, object), isGone: true };
  // Watchers see the end of the grace period before the object is gone, as with the original.
  if (graceful !== undefined) store(withFinalizers(graceful, finalizers));
  const last = transaction.remove(kind.collection, { namespace, name });
  return { answer: answerOf(kind, last, object), isGone: true };
}

function answerOf(kind: Kind, object: StoredObject, { metadata }: ApiObject): StoredObject | Status {
  return kind.returnsDeleted ? object : deletedStatus(kind.resource, metadata.name ?? "", metadata.uid ?? "");
}

/** The last moment that RFC 3339 can write. */
const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59);

/** The metadata of an object in its grace period; undefined if it has none, `pending` if that is already running. */
function gracefulMeta(
  kind: Kind,
  object: ApiObject,
  { requested, now }: { readonly requested: number | undefined; readonly now: number },
): ObjectMeta | "pending" | undefined {
  if (kind.graceSeconds === undefined) return undefined;
  const asked = requested !== undefined && requested < 0 ? 1 : requested;
  const { metadata } = object;
  const { deletionTimestamp, deletionGracePeriodSeconds: running = 0 } = metadata;
  if (deletionTimestamp === undefined) {
    // A period that ends later than any time that can be written would make the object one that nobody can delete.
    const seconds = Math.min(kind.graceSeconds(object, asked), Math.floor((LAST_MS - now) / 1000));
    const generation = metadata.generation === undefined ? {} : { generation: metadata.generation + 1 };
    const deletedAt = timeText(now + seconds * 1000);
    return { ...metadata, ...generation, deletionTimestamp: deletedAt, deletionGracePeriodSeconds: seconds };
  }
  if (running === 0) return undefined;
  // A grace period may only become shorter.
  if (asked === undefined || asked >= running) return "pending";
  const shortened = Date.parse(deletionTimestamp) - (running - asked) * 1000;
  const seconds = shortened < now && asked !== 0 ? 1 : asked;
  const deletedAt = timeText(Math.max(shortened, now));
  return { ...metadata, deletionTimestamp: deletedAt, deletionGracePeriodSeconds: seconds };
}

/** The metadata of an object that waits for its finalizers. */
function markedMeta({ isHeld }: Kind, metadata: ObjectMeta, now: number): ObjectMeta {
  const { deletionTimestamp, generation } = metadata;
  const isLate = deletionTimestamp === undefined || Date.parse(deletionTimestamp) > now;
  return {
    ...metadata,
    ...(deletionTimestamp === undefined && generation !== undefined && { generation: generation + 1 }),
    ...(isLate && { deletionTimestamp: timeText(now) }),
    ...(isHeld === undefined && { deletionGracePeriodSeconds: 0 }),
  };
}

function withFinalizers(metadata: ObjectMeta, finalizers: readonly string[]): ObjectMeta {
  const { finalizers: _old, ...rest } = metadata;
  return finalizers.length === 0 ? rest : { ...rest, finalizers };
}

/** The finalizers of the object with those that its dependents need, as the request or the kind says. */
function finalizersFor(kind: Kind, { finalizers = [] }: ObjectMeta, options: DeleteOptions): readonly string[] {
  const others = finalizers.filter((name) => name !== ORPHAN && name !== FOREGROUND);
  if (kind.propagation === "Unsupported") return others;
  const policy = options.propagationPolicy ?? policyOf(options) ?? keptPolicy(finalizers) ?? kind.propagation;
  if (policy === "Orphan") return [...others, ORPHAN];
  return policy === "Foreground" ? [...others, FOREGROUND] : others;
}

function policyOf({ orphanDependents }: DeleteOptions): string | undefined {
  return orphanDependents === undefined ? undefined : orphanDependents ? "Orphan" : "Background";
}

function keptPolicy(finalizers: readonly string[]): string | undefined {
  if (finalizers.includes(ORPHAN)) return "Orphan";
  return finalizers.includes(FOREGROUND) ? "Foreground" : undefined;
}

function checkPreconditions(kind: Kind, metadata: ObjectMeta, { preconditions }: DeleteOptions): void {
  const { name = "", uid = "", resourceVersion = "" } = metadata;
  const resource = { group: kind.resource.group, plural: kind.resource.kind };
  if (preconditions?.uid !== undefined && preconditions.uid !== uid) {
    const found = `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid})`;
    throw conflict(resource, name, `${found}. The object might have been deleted and then recreated`);
  }
  const version = preconditions?.resourceVersion;
  if (version !== undefined && version !== resourceVersion) {
    const found = `the ResourceVersion in the precondition (${version}) does not match the ResourceVersion in record (${resourceVersion})`;
    throw conflict(resource, name, `${found}. The object might have been modified`);
  }
}

const DELETE_OPTIONS = { group: "meta.k8s.io", kind: "DeleteOptions" };
const POLICIES = ["Foreground", "Background", "Orphan"];

function checkDeleteOptions({ propagationPolicy, orphanDependents, dryRun = [] }: DeleteOptions): void {
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    const message = "orphanDependents and deletionPropagation cannot be both set";
    throw invalidObject(DELETE_OPTIONS, "", [invalid("propagationPolicy", propagationPolicy, message)]);
  }
  if (propagationPolicy !== undefined && !POLICIES.includes(propagationPolicy)) {
    const error = notSupported("propagationPolicy", propagationPolicy, [...POLICIES, "nil"]);
    throw invalidObject(DELETE_OPTIONS, "", [error]);
  }
  if (dryRun.some((word) => word !== "All")) {
    throw invalidObject(DELETE_OPTIONS, "", [notSupported("dryRun", dryRun, ["All"])]);
  }
}
