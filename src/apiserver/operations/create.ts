import { NAMESPACES } from "../../adapters/kubeapi/index.ts";
import type { ApiObject, Kind, SideWrites, WriteContext } from "../kinds/kind.ts";
import { recordUpdate } from "../ownership/field-owner.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import { alreadyExists, forbiddenRequest, notFound, StatusError } from "../status/status-error.ts";
import { type JsonObject, StoredObject, type Transaction } from "../store/index.ts";
import { newUid, type OperationDeps, storedForm, type Target, type WriteRequest, writeContext } from "./context.ts";
import { decodeObject, type ParsedBody } from "./decode-object.ts";
import { inNamespace, preparedForCreate, withIdentity, withoutSystemFields } from "./prepare.ts";

const NAME_ATTEMPTS = 8;

/** Creates an object. Resolves with it as it is stored; rejects with `StatusError` or `LogError`. */
export async function createObject(
  deps: OperationDeps,
  target: Target,
  { body, request }: { readonly body: ParsedBody; readonly request: WriteRequest },
): Promise<StoredObject> {
  const decoded = decodeObject(target.kind, body, request);
  if (decoded.metadata.resourceVersion !== undefined) throw versionOnCreate();
  return runWrite(deps, request, (transaction) => insertObject(deps, { ...target, transaction }, { decoded, request }));
}

/** Runs a write; a dry run happens to no one else. */
export function runWrite<T>(
  { store }: OperationDeps,
  { isDryRun }: WriteRequest,
  work: (transaction: Transaction) => T,
): Promise<T> {
  return isDryRun ? Promise.resolve().then(() => store.preview(work)) : store.commit(work);
}

/** The whole way of a new object into a transaction; also for objects that an update or an apply creates. */
export function insertObject(
  deps: OperationDeps,
  { kind, namespace, transaction }: Target & { readonly transaction: Transaction },
  {
    decoded,
    request,
    owned,
  }: {
    readonly decoded: ApiObject;
    readonly request: WriteRequest;
    /** True if `managedFields` are there already. */
    readonly owned?: boolean;
  },
): StoredObject {
  const context = writeContext(deps, transaction, request);
  const placed = inNamespace(kind, withoutSystemFields(decoded), namespace);
  const tracked = owned ? placed : withOwner(kind, placed, { manager: request.manager, now: context.now });
  const writes = sideWrites(deps, transaction, context);
  if (kind.makesNamespace?.(placed)) makeNamespace(deps, placed, writes);
  checkNamespace(kind, placed, context);
  const admitted = kind.admit?.(tracked, context) ?? tracked;
  const object = named(kind, admitted, context);
  const prepared = preparedForCreate(kind, object, context);
  const { name = "" } = prepared.metadata;
  const place = { namespace: prepared.metadata.namespace ?? "", name };
  if (transaction.get(kind.collection, place) !== undefined) throw alreadyExists(kind.resource, name);
  const stored = withinLimit(transaction.put(kind.collection, place, storedForm(kind, prepared)));
  kind.afterCreate?.(prepared, writes);
  return request.isDryRun ? withoutVersion(stored) : stored;
}

/** Characters of one object, as in Kubernetes, whose storage takes no more: patches could make one grow without an end. */
const MOST_LENGTH = 1.5 * 1024 * 1024;

/** Returns the object. Throws `StatusError` if it is too large to be stored. */
export function withinLimit(object: StoredObject): StoredObject {
  if (object.text.length <= MOST_LENGTH) return object;
  throw new StatusError({ code: 500, reason: "", message: "etcdserver: request is too large" });
}

/** A generated name that is taken is generated again. */
function named(kind: Kind, object: ApiObject, context: WriteContext): ApiObject {
  for (let attempt = 1; ; attempt++) {
    const made = withIdentity(object, context);
    const { name = "", namespace = "" } = made.metadata;
    const isGenerated = (object.metadata.name ?? "") === "";
    const isTaken = isGenerated && context.read.get(kind.storedAs?.resource ?? kind.resource, { namespace, name });
    if (!isTaken || attempt === NAME_ATTEMPTS) return made;
  }
}

function withOwner(kind: Kind, object: ApiObject, { manager, now }: { manager: string; now: string }): ApiObject {
  const write = { type: kind.schemaType, apiVersion: kind.apiVersion, manager, subresource: "", now };
  const live = decodeTree(kind.schemaType, {}).object;
  // Only managedFields are added.
  return recordUpdate(live, object as unknown as JsonObject, write) as unknown as ApiObject;
}

function makeNamespace({ kinds }: OperationDeps, { metadata }: ApiObject, writes: SideWrites): void {
  const namespace = { metadata: { name: metadata.namespace ?? "" }, spec: { finalizers: ["kubernetes"] } };
  writes.ensure(NAMESPACES, { ...namespace, status: { phase: "Active" } });
  kinds.of(NAMESPACES).afterCreate?.(namespace, writes);
}

/** Nothing is created in a namespace that is not there, or that is being deleted. */
function checkNamespace(kind: Kind, { metadata }: ApiObject, { read }: WriteContext): void {
  if (!kind.resource.isNamespaced) return;
  const { namespace = "", name = "" } = metadata;
  const found = read.get(NAMESPACES, { name: namespace });
  if (found === undefined) throw notFound(NAMESPACES, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const refused = forbiddenRequest(kind.resource, name, why);
  const causes = [
    {
      reason: "NamespaceTerminating",
      message: `namespace ${namespace} is being terminated`,
      field: "metadata.namespace",
    },
  ];
  throw new StatusError({
    code: 403,
    reason: "Forbidden",
    message: refused.message,
    details: { ...refused.status.details, causes },
  });
}

/** Objects that come with another one: no client wrote them, so nobody owns their fields. */
function sideWrites(deps: OperationDeps, transaction: Transaction, context: WriteContext): SideWrites {
  return {
    ensure: (resource, object) => {
      const kind = deps.kinds.of(resource);
      const { name = "", namespace = "" } = object.metadata;
      if (transaction.get(kind.collection, { namespace, name }) !== undefined) return;
      const decoded = decodeTree(kind.schemaType, object).object as unknown as ApiObject; // reason: decoded by its schema
      const whole = kind.defaults?.(decoded) ?? decoded;
      const metadata = { ...whole.metadata, uid: newUid(), creationTimestamp: context.now };
      transaction.put(kind.collection, { namespace, name }, storedForm(kind, { ...whole, metadata }));
    },
  };
}

function withoutVersion(stored: StoredObject): StoredObject {
  const tree = stored.parse();
  delete (tree.metadata as JsonObject).resourceVersion;
  return new StoredObject(stored, JSON.stringify(tree), stored.revision);
}

function versionOnCreate(): StatusError {
  const message = "resourceVersion should not be set on objects to be created";
  return new StatusError({ code: 500, reason: "", message });
}
