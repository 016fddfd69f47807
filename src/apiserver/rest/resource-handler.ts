import type { RouteAnswer } from "../../adapters/net/http-route.ts";
import { ownValue } from "../../lib/own-value.ts";
import type { OperationDeps, Target, WriteRequest } from "../operations/context.ts";
import { createObject } from "../operations/create.ts";
import { deleteCollection, deleteObject } from "../operations/delete.ts";
import { getObject, listObjects } from "../operations/list.ts";
import { type PatchType, patchObject } from "../operations/patch.ts";
import { parseSelection } from "../operations/selection.ts";
import { replaceObject, type UpdatePath, updatePath } from "../operations/update.ts";
import { watchObjects } from "../operations/watch.ts";
import {
  badRequest,
  methodNotAllowed,
  noSuchResource,
  tooManyRequests,
  unsupportedPatch,
} from "../status/status-error.ts";
import { StoredObject } from "../store/index.ts";
import type { ApiCall } from "./api-call.ts";
import type { ApiPath } from "./api-path.ts";
import type { EventLines } from "./event-lines.ts";
import { isLong, LONG_LIST_BYTES, listAnswer } from "./list-body.ts";
import { negotiateOutput } from "./negotiate.ts";
import { managerOf, readDeleteOptions, readFlag, readNumber, readSelectors, readWriteQuery } from "./query.ts";
import { readOptionalBody, readParsedBody } from "./read-body.ts";
import { objectText, type Rendering, textAnswerOf } from "./render.ts";
import type { SubresourceTable } from "./subresource.ts";
import { WatchBody } from "./watch-body.ts";

export interface ResourceDeps extends OperationDeps {
  /** Sub-resources that are more than a part of an object. */
  readonly subresources: SubresourceTable;
  readonly lines: EventLines;
}

const PATCH_TYPES: Readonly<Record<string, PatchType>> = {
  "application/json-patch+json": "json",
  "application/merge-patch+json": "merge",
  "application/strategic-merge-patch+json": "strategic",
  "application/apply-patch+yaml": "apply",
};

/** Answers a request about a resource. Rejects with `StatusError`, or with `LogError` if the disk fails. */
export async function handleResource(deps: ResourceDeps, path: ApiPath, call: ApiCall): Promise<RouteAnswer> {
  const kind = deps.kinds.find(path);
  if (kind === undefined) throw noSuchResource();
  // All namespaces are listed and watched, and nothing else.
  if (kind.resource.isNamespaced && path.namespace === "" && path.name !== "") throw noSuchResource();
  if (!kind.resource.isNamespaced && path.namespace !== "") throw noSuchResource();
  const target = { kind, namespace: path.namespace, name: path.name };
  if (kind.deprecation !== undefined) call.warn(kind.deprecation);
  if (path.subresource !== "") {
    const own = deps.subresources.find(kind, path.subresource);
    if (own !== undefined) return own.handle(target, call);
  }
  const update = updatePath(kind, path.subresource);
  if (update === undefined) throw noSuchResource();
  return new ResourceHandler(deps, { ...target, path: update }, call).handle();
}

class ResourceHandler {
  private readonly rendering: Rendering;

  constructor(
    private readonly deps: ResourceDeps,
    private readonly target: Target & { readonly path: UpdatePath },
    private readonly call: ApiCall,
  ) {
    const format = negotiateOutput(call.request.headers.accept);
    const word = call.request.query.get("includeObject") || "Metadata";
    if (word !== "None" && word !== "Metadata" && word !== "Object") {
      throw badRequest(`unrecognized includeObject value: ${JSON.stringify(word)}`);
    }
    this.rendering = { kind: target.kind, format, includeObject: word, now: deps.clock.now().wall };
  }

  handle(): Promise<RouteAnswer> {
    const { method, query } = this.call.request;
    const isCollection = this.target.name === "";
    switch (method) {
      case "GET":
      case "HEAD":
        if (!isCollection) return this.get();
        return readFlag(query, "watch") === true ? this.watch() : this.list();
      case "POST":
        if (!isCollection) throw methodNotAllowed();
        return this.create();
      case "PUT":
        if (isCollection) throw methodNotAllowed();
        return this.replace();
      case "PATCH":
        if (isCollection) throw methodNotAllowed();
        return this.patch();
      case "DELETE":
        if (this.target.path.name !== "") throw methodNotAllowed();
        return isCollection ? this.deleteAll() : this.delete();
      default:
        throw methodNotAllowed();
    }
  }

  private async get(): Promise<RouteAnswer> {
    const { query, signal } = this.call.request;
    const resourceVersion = query.get("resourceVersion") ?? "";
    const object = await getObject(this.deps, this.target, { resourceVersion, signal });
    this.hold(object.text.length);
    return this.answer(200, objectText(this.rendering, object));
  }

  private async list(): Promise<RouteAnswer> {
    const { query, signal } = this.call.request;
    const limit = readNumber(query, "limit");
    const match = query.get("resourceVersionMatch");
    const page = await listObjects(this.deps, this.target, {
      ...readSelectors(query),
      resourceVersion: query.get("resourceVersion") ?? "",
      ...(match && { resourceVersionMatch: match }),
      ...(limit !== undefined && { limit }),
      continue: query.get("continue") ?? "",
      signal,
    });
    if (isLong(page.items)) this.hold(LONG_LIST_BYTES);
    return listAnswer(this.rendering, page);
  }

  /** Counts what the answer takes of the memory. Throws `StatusError` if there is too much of it in flight. */
  private hold(bytes: number): void {
    if (this.call.request.hold?.(bytes) === false) throw tooManyRequests();
  }

  private async watch(): Promise<RouteAnswer> {
    const { query, signal } = this.call.request;
    const seconds = readNumber(query, "timeoutSeconds");
    const initial = readFlag(query, "sendInitialEvents");
    const match = query.get("resourceVersionMatch");
    const watch = await watchObjects(this.deps, this.target, {
      ...readSelectors(query),
      resourceVersion: query.get("resourceVersion") ?? "",
      ...(match && { resourceVersionMatch: match }),
      ...(initial !== undefined && { sendInitialEvents: initial }),
      allowWatchBookmarks: readFlag(query, "allowWatchBookmarks") === true,
      ...(seconds !== undefined && { timeoutSeconds: seconds }),
      signal,
    });
    const { clock, lines } = this.deps;
    return { status: 200, type: "application/json", body: new WatchBody({ clock, lines, watch }, this.rendering) };
  }

  private async create(): Promise<RouteAnswer> {
    const { request, body } = await this.write("CreateOptions");
    const object = await createObject(this.deps, this.target, { body, request });
    return this.answer(201, objectText(this.rendering, object));
  }

  private async replace(): Promise<RouteAnswer> {
    const { request, body } = await this.write("UpdateOptions");
    const { object, isCreated } = await replaceObject(this.deps, this.target, { body, request });
    return this.answer(isCreated ? 201 : 200, objectText(this.rendering, object));
  }

  private async patch(): Promise<RouteAnswer> {
    const { headers, query } = this.call.request;
    const given = (headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
    const type = ownValue(PATCH_TYPES, given);
    if (type === undefined) throw unsupportedPatch();
    const { fieldManager, ...options } = readWriteQuery(query, "PatchOptions");
    const manager = type === "apply" ? fieldManager : managerOf(fieldManager, headers["user-agent"]);
    const request: WriteRequest = { ...options, manager, user: this.call.user, warn: (text) => this.call.warn(text) };
    const { clock } = this.deps;
    const body = await readParsedBody(this.call.request, { clock, encoding: type === "apply" ? "yaml" : "json" });
    const force = readFlag(query, "force");
    const patch = { type, body, request, ...(force !== undefined && { isForced: force }) };
    const { object, isCreated } = await patchObject(this.deps, this.target, patch);
    return this.answer(isCreated ? 201 : 200, objectText(this.rendering, object));
  }

  private async delete(): Promise<RouteAnswer> {
    const { options, request } = await this.deletion();
    const { answer, isGone } = await deleteObject(this.deps, this.target, { options, request });
    const text = answer instanceof StoredObject ? objectText(this.rendering, answer) : JSON.stringify(answer);
    return this.answer(!isGone && options.orphanDependents === false ? 202 : 200, text);
  }

  private async deleteAll(): Promise<RouteAnswer> {
    const { options, request } = await this.deletion();
    const selection = parseSelection(this.target, readSelectors(this.call.request.query));
    const target = { ...this.target, isSelected: selection.matches };
    const items = await deleteCollection(this.deps, target, { options, request });
    const page = { items, revision: this.deps.store.revision, continue: "", remaining: undefined };
    return listAnswer(this.rendering, page);
  }

  private async deletion() {
    const { request, user } = this.call;
    const body = await readOptionalBody(request, this.deps.clock);
    const options = readDeleteOptions(body?.value, request.query);
    const isDryRun = (options.dryRun ?? []).length > 0;
    const manager = managerOf("", request.headers["user-agent"]);
    return { options, request: { user, manager, isDryRun, warn: (text: string) => this.call.warn(text) } };
  }

  private async write(kind: string) {
    const { request, user } = this.call;
    const { fieldManager, ...options } = readWriteQuery(request.query, kind);
    const manager = managerOf(fieldManager, request.headers["user-agent"]);
    const body = await readParsedBody(request, this.deps);
    const written: WriteRequest = { ...options, manager, user, warn: (text) => this.call.warn(text) };
    return { request: written, body };
  }

  private answer(status: number, text: string): Promise<RouteAnswer> {
    return textAnswerOf(status, text, this.rendering.format);
  }
}
