import { isDeepStrictEqual } from "node:util";
import type { ObjectMeta } from "../../model/generated/types.ts";
import type { ApiObject, Kind, UpdateSubresource, WriteContext } from "../kinds/kind.ts";
import { checkName } from "../kinds/name-rules.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import type { FieldError } from "../status/field-error.ts";
import { badRequest, invalidObject } from "../status/status-error.ts";
import { validateMeta, validateMetaUpdate } from "../validation/object-meta.ts";
import { newUid } from "./context.ts";

/** Kubernetes cuts the prefix of a generated name so that the whole fits a label. */
const LONGEST_PREFIX = 58;

type Spec = ApiObject & { readonly spec?: unknown; readonly status?: unknown };

/** The object without what only a server sets. */
export function withoutSystemFields(object: ApiObject): ApiObject {
  const {
    uid: _uid,
    creationTimestamp: _created,
    deletionTimestamp: _deleted,
    deletionGracePeriodSeconds: _grace,
    selfLink: _link,
    ...metadata
  } = object.metadata;
  return { ...object, metadata };
}

/** The object in the namespace of the request. Throws `StatusError` if it says another one. */
export function inNamespace(kind: Kind, object: ApiObject, namespace: string): ApiObject {
  const given = object.metadata.namespace ?? "";
  if (!kind.resource.isNamespaced || given === namespace) return object;
  if (given !== "") {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return { ...object, metadata: { ...object.metadata, namespace } };
}

/** The object with a name, a UID and the time of its creation. */
export function withIdentity(object: ApiObject, context: WriteContext): ApiObject {
  const { metadata } = object;
  const { name = "", generateName = "" } = metadata;
  const made =
    name === "" && generateName !== "" ? `${generateName.slice(0, LONGEST_PREFIX)}${context.suffix()}` : name;
  const identity = { ...(made !== "" && { name: made }), uid: newUid(), creationTimestamp: context.now };
  return { ...object, metadata: { ...metadata, ...identity } };
}

/** What is stored of a new object. Throws `StatusError` if it is invalid. */
export function preparedForCreate(kind: Kind, object: ApiObject, context: WriteContext): ApiObject {
  const { generation: _generation, ...metadata } = object.metadata;
  const counted = kind.hasGeneration ? { ...metadata, generation: 1 } : metadata;
  const bare = { ...object, metadata: counted, ...(kind.status && !kind.createsWithStatus && emptyStatus(kind)) };
  const prepared = kind.prepareCreate?.(bare, context) ?? bare;
  checkErrors(kind, prepared, [...(kind.validate?.(prepared) ?? []), ...metaErrors(kind, prepared)]);
  return prepared;
}

/** What is stored of a changed object. Throws `StatusError` if the change is invalid. */
export function preparedForUpdate(
  { kind, subresource }: { readonly kind: Kind; readonly subresource: UpdateSubresource<ApiObject> | undefined },
  { next, old }: { readonly next: ApiObject; readonly old: ApiObject },
  context: WriteContext,
): ApiObject {
  const placed = { ...next, metadata: { ...next.metadata, ...generationOf(old.metadata) } };
  const kept = subresource === undefined && kind.status !== undefined ? withStatusOf(placed, old) : placed;
  const change = subresource?.prepare ?? kind.prepareUpdate;
  const changed = change?.call(subresource ?? kind, kept, old, context) ?? kept;
  const counted = { ...changed, metadata: updatedMeta(changed.metadata, old.metadata) };
  const isCounted = specChanged(counted, old) || (subresource === undefined && kind.countsChange?.(counted, old));
  const prepared = kind.hasGeneration && isCounted ? withNextGeneration(counted) : counted;
  const own = subresource === undefined ? kind.validateUpdate : subresource.validate;
  const ofMeta = [
    ...metaErrors(kind, prepared).filter(({ field }) => field !== "metadata.generateName"),
    ...validateMetaUpdate(prepared.metadata, old.metadata),
  ];
  checkErrors(kind, prepared, [
    ...ofMeta,
    // Once for all kinds and once by the rules of the kind, as in Kubernetes.
    ...ofMeta,
    ...(subresource === undefined ? (kind.validate?.(prepared) ?? []) : []),
    ...(own?.call(subresource ?? kind, prepared, old) ?? []),
  ]);
  return prepared;
}

/** Errors that an answer names: an object may have several for each of its fields. */
const MOST_ERRORS = 1_000;

function checkErrors(kind: Kind, { metadata }: ApiObject, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject(kind.resource, metadata.name ?? "", errors.slice(0, MOST_ERRORS));
}

/** The `status` sub-resource of a kind: everything but the spec may change. */
export function statusUpdate(kind: Kind): UpdateSubresource<ApiObject> | undefined {
  if (kind.status === undefined) return undefined;
  const { prepare, validate } = kind.status;
  return {
    prepare: (object, old, context) => {
      const kept = withSpecOf(object, old);
      return prepare?.(kept, old, context) ?? kept;
    },
    ...(validate && { validate }),
  };
}

function metaErrors(kind: Kind, { metadata }: ApiObject) {
  const { isNamespaced } = kind.resource;
  return [...checkName(kind.nameRule ?? "subdomain", metadata), ...validateMeta(metadata, { isNamespaced })];
}

function emptyStatus(kind: Kind): { readonly status?: unknown } {
  const { status } = decodeTree(kind.schemaType, {}).object;
  return { status };
}

function withStatusOf(next: Spec, old: Spec): Spec {
  const { status: _status, ...rest } = next;
  return old.status === undefined ? rest : { ...rest, status: old.status };
}

function withSpecOf(next: Spec, old: Spec): Spec {
  const { spec: _spec, ...rest } = next;
  return old.spec === undefined ? rest : { ...rest, spec: old.spec };
}

/** What an update of the metadata may never change. */
function updatedMeta(next: ObjectMeta, old: ObjectMeta): ObjectMeta {
  return {
    ...next,
    uid: next.uid || old.uid || "",
    ...(old.creationTimestamp !== undefined && { creationTimestamp: old.creationTimestamp }),
    ...(old.deletionTimestamp !== undefined && { deletionTimestamp: old.deletionTimestamp }),
    ...(old.deletionGracePeriodSeconds !== undefined &&
      next.deletionGracePeriodSeconds === undefined && { deletionGracePeriodSeconds: old.deletionGracePeriodSeconds }),
  };
}

function generationOf({ generation }: ObjectMeta): Pick<ObjectMeta, "generation"> {
  return generation === undefined ? {} : { generation };
}

function specChanged(next: Spec, old: Spec): boolean {
  return !isDeepStrictEqual(plain(next.spec), plain(old.spec));
}

function withNextGeneration(object: ApiObject): ApiObject {
  return { ...object, metadata: { ...object.metadata, generation: (object.metadata.generation ?? 0) + 1 } };
}

/** Without fields that are undefined: they are not stored. */
export function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
