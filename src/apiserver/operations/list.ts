import type { Abortable } from "../../lib/abort.ts";
import { type FieldError, forbidden, invalid, notSupported } from "../status/field-error.ts";
import { badRequest, expired, invalidObject, notFound, type StatusError } from "../status/status-error.ts";
import type { StoredObject } from "../store/index.ts";
import type { OperationDeps, Target } from "./context.ts";
import { parseRevision, untilRevision } from "./revisions.ts";
import { parseSelection, type Selection, type SelectionQuery, selectInPieces } from "./selection.ts";

/** What a list is asked for. */
export interface ListRequest extends SelectionQuery {
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: string;
  readonly limit?: number;
  readonly continue?: string;
}

/** One page of a list. */
export interface ListPage {
  readonly items: readonly StoredObject[];
  readonly revision: number;
  /** Empty on the last page. */
  readonly continue: string;
  /** Known only without selectors. */
  readonly remaining: number | undefined;
}

/** Reads an object. Rejects with `StatusError`. */
export async function getObject(
  deps: OperationDeps,
  { kind, namespace, name }: Target,
  { resourceVersion, signal }: Abortable & { readonly resourceVersion?: string },
): Promise<StoredObject> {
  const wanted = parseRevision(resourceVersion);
  if (wanted !== undefined) await untilRevision(deps, wanted, { signal });
  const found = deps.store.get(kind.collection, { namespace, name });
  if (found === undefined) throw notFound(kind.resource, name);
  return found;
}

/** Lists the objects of a namespace, or of all. Rejects with `StatusError`. */
export async function listObjects(
  deps: OperationDeps,
  target: Target,
  { signal, ...request }: Abortable & ListRequest,
): Promise<ListPage> {
  checkListOptions(request);
  const { store } = deps;
  const { collection } = target.kind;
  const selection = parseSelection(target, request);
  const token = request.continue ? decodeToken(request.continue) : undefined;
  const wanted = parseRevision(request.resourceVersion);
  if (token === undefined && wanted !== undefined) await untilRevision(deps, wanted, { signal });
  const exact = token?.revision ?? (isExact(request, wanted) ? wanted : undefined);
  const revision = exact === undefined || exact < 0 ? store.revision : exact;
  const all = store.listAt(collection, revision);
  if (all === undefined) throw tooOld(token, { revision, oldest: store.oldest(collection) });
  const begin = token === undefined ? 0 : firstAfter(all, token.after);
  const limit = request.limit === undefined || request.limit <= 0 ? Number.POSITIVE_INFINITY : request.limit;
  const { items, more } = await selected(begin === 0 ? all : all.slice(begin), selection, { limit, signal });
  const last = items.at(-1);
  const isCut = more > 0 && last !== undefined;
  return {
    items,
    revision,
    continue: isCut ? encodeToken({ revision, after: last }) : "",
    remaining: isCut && selection.isAll ? more : undefined,
  };
}

/** Selected objects up to the limit, and how many more there are. */
async function selected(
  all: readonly StoredObject[],
  selection: Selection,
  { limit, signal }: Abortable & { readonly limit: number },
): Promise<{ readonly items: readonly StoredObject[]; readonly more: number }> {
  if (selection.isEvery)
    return { items: all.length > limit ? all.slice(0, limit) : all, more: Math.max(0, all.length - limit) };
  const items: StoredObject[] = [];
  let more = 0;
  for await (const matching of selectInPieces(all, selection, { signal })) {
    const room = Math.max(0, limit - items.length);
    for (const object of matching.slice(0, room)) items.push(object);
    more += Math.max(0, matching.length - room);
  }
  return { items, more };
}

function isExact({ resourceVersionMatch, limit }: ListRequest, wanted: number | undefined): boolean {
  if (wanted === undefined || wanted === 0) return false;
  return resourceVersionMatch === "Exact" || (resourceVersionMatch === undefined && limit !== undefined && limit > 0);
}

interface Token {
  /** Negative: whatever the newest is. */
  readonly revision: number;
  readonly after: { readonly namespace: string; readonly name: string };
}

/** In the form of Kubernetes, so that tools that look inside understand it. */
function encodeToken({ revision, after }: Token): string {
  const start = `${after.namespace === "" ? "" : `${after.namespace}/`}${after.name}\0`;
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: revision, start })).toString("base64url");
}

function decodeToken(text: string): Token {
  const wrong = (why: string): StatusError => badRequest(`invalid continue token: continue key is not valid: ${why}`);
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    throw wrong("it cannot be decoded");
  }
  if (typeof value !== "object" || value === null || !("v" in value) || !("rv" in value) || !("start" in value)) {
    throw wrong("a field is missing");
  }
  const { v, rv, start } = value;
  if (v !== "meta.k8s.io/v1") throw wrong(`server does not recognize this encoded version ${JSON.stringify(v)}`);
  if (typeof rv !== "number" || !Number.isSafeInteger(rv) || rv === 0)
    throw wrong("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  if (typeof start !== "string" || !start.endsWith("\0"))
    throw wrong("incorrect encoded start key (version meta.k8s.io/v1)");
  const [left = "", right] = start.slice(0, -1).split("/", 2);
  return {
    revision: rv,
    after: right === undefined ? { namespace: "", name: left } : { namespace: left, name: right },
  };
}

function firstAfter(all: readonly StoredObject[], { namespace, name }: Token["after"]): number {
  const index = all.findIndex(
    (object) => object.namespace > namespace || (object.namespace === namespace && object.name > name),
  );
  return index === -1 ? all.length : index;
}

/** What is not known any more; a continued list may go on with what there is now. */
function tooOld(token: Token | undefined, { revision, oldest }: { revision: number; oldest: number }): StatusError {
  if (token === undefined)
    return expired(`The resourceVersion for the provided list is too old: ${revision} (${oldest})`);
  const message =
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
  const error = expired(message);
  const next = encodeToken({ revision: -1, after: token.after });
  Object.assign(error.status, { metadata: { continue: next } });
  return error;
}

const LIST_OPTIONS = { group: "meta.k8s.io", kind: "ListOptions" };
const MATCHES = ["Exact", "NotOlderThan"];

function checkListOptions(request: ListRequest): void {
  const { resourceVersion = "", resourceVersionMatch, limit } = request;
  const errors: FieldError[] = [];
  if (resourceVersionMatch !== undefined) {
    if (resourceVersion === "") {
      errors.push(
        forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
      );
    }
    if (request.continue) {
      errors.push(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"));
    }
    if (!MATCHES.includes(resourceVersionMatch)) {
      errors.push(notSupported("resourceVersionMatch", resourceVersionMatch, [...MATCHES, ""]));
    }
    if (resourceVersionMatch === "Exact" && resourceVersion === "0") {
      const message = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"';
      errors.push(forbidden("resourceVersionMatch", message));
    }
  }
  if (request.continue && resourceVersion !== "" && resourceVersion !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  if (limit !== undefined && limit < 0) errors.push(invalid("limit", limit, "must be greater than or equal to 0"));
  if (errors.length > 0) throw invalidObject(LIST_OPTIONS, "", errors);
}
