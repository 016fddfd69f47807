import type { ApiObject, Kind } from "../kinds/kind.ts";
import { applyConfiguration } from "../ownership/field-owner.ts";
import { jsonPatch } from "../patch/json-patch.ts";
import { mergePatch } from "../patch/merge-patch.ts";
import { strategicPatch } from "../patch/strategic-patch.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import { shownPath } from "../schema/duplicate-keys.ts";
import { isTree } from "../schema/type-schema.ts";
import { forbidden, invalid, required } from "../status/field-error.ts";
import { badRequest, conflict, invalidObject, notFound, StatusError } from "../status/status-error.ts";
import type { JsonObject } from "../store/index.ts";
import { kindForm, type OperationDeps, type Target, timeText, type WriteRequest } from "./context.ts";
import { insertObject, runWrite } from "./create.ts";
import { decodeFields, decodeObject, type ParsedBody, reportStrictly, UnreadableObject } from "./decode-object.ts";
import { plain } from "./prepare.ts";
import { changeObject, type Updated, type UpdatePath } from "./update.ts";

export type PatchType = "json" | "merge" | "strategic" | "apply";

export interface PatchRequest {
  readonly type: PatchType;
  readonly body: ParsedBody;
  readonly request: WriteRequest;
  /** With `apply`: takes over what others own. */
  readonly isForced?: boolean;
}

/** Patches an object, or creates it by an apply. Rejects with `StatusError` or `LogError`. */
export async function patchObject(
  deps: OperationDeps,
  target: Target & { readonly path: UpdatePath },
  patch: PatchRequest,
): Promise<Updated> {
  checkOptions(patch);
  if (patch.type === "apply") return applyObject(deps, target, patch);
  const { kind, namespace, name } = target;
  const { request } = patch;
  return runWrite(deps, request, (transaction) => {
    const existing = transaction.get(kind.collection, { namespace, name });
    if (existing === undefined) throw notFound(kind.resource, name);
    const live = plain(kindForm(kind, existing.parse())) as JsonObject; // reason: an object stays one
    const value = patched(kind, live, patch);
    const duplicates = patch.type === "json" ? [] : patch.body.duplicates;
    const next = decodePatched(kind, { value, duplicates }, request);
    checkName(target, next);
    const object = changeObject(deps, { ...target, transaction, existing }, { next, request });
    return { object, isCreated: false };
  });
}

/** A patch that makes something else of an object is a wrong patch: it is named with what it made. */
function decodePatched(kind: Kind, body: ParsedBody, request: WriteRequest): ApiObject {
  try {
    return decodeObject(kind, body, request);
  } catch (error) {
    if (!(error instanceof UnreadableObject)) throw error;
    throw invalidObject({ group: "", kind: "" }, "", [invalid("patch", JSON.stringify(body.value), error.why)]);
  }
}

function checkName({ name }: Target, { metadata }: ApiObject): void {
  if (!metadata.name) {
    throw badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
  }
  if (metadata.name === name) return;
  throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
}

function patched(kind: Kind, live: JsonObject, { type, body }: PatchRequest): unknown {
  switch (type) {
    case "json":
      return jsonPatch(live, body.value);
    case "merge":
      return mergePatch(live, objectOf(body.value));
    default:
      return strategicPatch(kind.schemaType, live, objectOf(body.value));
  }
}

function objectOf(value: unknown): JsonObject {
  if (isTree(value)) return value;
  const found = Array.isArray(value) ? "array" : typeof value === "boolean" ? "bool" : typeof value;
  throw badRequest(
    `error decoding patch: json: cannot unmarshal ${found} into Go value of type map[string]interface {}`,
  );
}

/** Server-side apply. */
async function applyObject(
  deps: OperationDeps,
  target: Target & { readonly path: UpdatePath },
  { body, request, isForced = false }: PatchRequest,
): Promise<Updated> {
  const { kind, namespace, name, path } = target;
  const config = objectOf(body.value);
  checkApplied(target, config);
  checkKnown(target, config);
  reportStrictly(kind, { unknown: [], duplicates: body.duplicates }, request);
  const write = {
    type: kind.schemaType,
    apiVersion: kind.apiVersion,
    manager: request.manager,
    subresource: path.name,
  };
  return runWrite(deps, request, (transaction) => {
    const now = timeText(deps.clock.now().wall);
    const existing = transaction.get(kind.collection, { namespace, name });
    const live = existing && (plain(kindForm(kind, existing.parse())) as JsonObject); // reason: an object stays one
    if (live === undefined && path.name !== "") throw notFound(kind.resource, name);
    const base = live ?? named(decodeTree(kind.schemaType, {}).object, target);
    const applied = applyConfiguration(base, config, { ...write, now, isForced });
    const next = decodeObject(kind, { value: applied, duplicates: [] }, { ...request, validation: "Ignore" });
    if (existing === undefined) {
      checkUid(kind, next);
      const object = insertObject(deps, { ...target, transaction }, { decoded: next, request, owned: true });
      return { object, isCreated: true };
    }
    const object = changeObject(deps, { ...target, transaction, existing }, { next, request, owned: true });
    return { object, isCreated: false };
  });
}

function checkApplied({ kind, name, namespace }: Target, config: JsonObject): void {
  const { apiVersion, kind: given, metadata = {} } = config;
  if (apiVersion === undefined) {
    throw badRequest("error decoding YAML: Object 'apiVersion' is missing in the applied configuration");
  }
  if (given !== kind.resource.kind) {
    const [version = "", group = ""] = String(apiVersion).split("/").reverse();
    throw badRequest(`invalid object type: ${group}/${version}, Kind=${String(given ?? "")}`);
  }
  if (apiVersion !== kind.apiVersion) {
    const versions = `Specified patch version: ${String(apiVersion)}, expected: ${kind.apiVersion}`;
    throw badRequest(`Incorrect version specified in apply patch. ${versions}`);
  }
  const meta: JsonObject = isTree(metadata) ? metadata : {};
  if (meta.name !== undefined && meta.name !== name) {
    throw badRequest(`the name of the object (${String(meta.name)}) does not match the name on the URL (${name})`);
  }
  if (meta.namespace !== undefined && meta.namespace !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
}

/** Unknown fields that an answer names. */
const MOST_UNKNOWN = 100;

/** Fields that the kind does not have cannot be owned. */
function checkKnown({ kind, name }: Target, config: JsonObject): void {
  const { unknown } = decodeFields(kind, config);
  if (unknown.length === 0) return;
  const { version, group, kind: word } = kind.resource;
  const given =
    isTree(config.metadata) && typeof config.metadata.namespace === "string" ? config.metadata.namespace : "";
  const object = `${given}/${name}; ${group}/${version}, Kind=${word}`;
  const problems = unknown.slice(0, MOST_UNKNOWN).map((path) => `.${shownPath(path)}: field not declared in schema`);
  const list = problems.length === 1 ? problems[0] : `errors:\n  ${problems.join("\n  ")}`;
  throw new StatusError({ code: 500, reason: "", message: `failed to create typed patch object (${object}): ${list}` });
}

function named(zero: JsonObject, { name, namespace }: Target): JsonObject {
  return { ...zero, metadata: { name, ...(namespace !== "" && { namespace }) } };
}

/** An apply that names a UID is about an object that is there. */
function checkUid(kind: Kind, { metadata }: ApiObject): void {
  if (metadata.uid === undefined) return;
  const why = `uid mismatch: the provided object specified uid ${metadata.uid}, and no existing object was found`;
  throw conflict(kind.resource, metadata.name ?? "", why);
}

const PATCH_OPTIONS = { group: "meta.k8s.io", kind: "PatchOptions" };

function checkOptions({ type, request, isForced }: PatchRequest): void {
  if (type === "apply" && request.manager === "") {
    throw invalidObject(PATCH_OPTIONS, "", [required("fieldManager", "is required for apply patch")]);
  }
  if (type !== "apply" && isForced !== undefined) {
    throw invalidObject(PATCH_OPTIONS, "", [forbidden("force", "may not be specified for non-apply patch")]);
  }
}
