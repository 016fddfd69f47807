import {
  ApiError,
  type CallOptions,
  type Deletion,
  errorOfAnswer,
  type KubeApi,
  type ListQuery,
  type NewObject,
  type ObjectList,
  type ObjectRef,
  type Patch,
  pathOf,
  type RawAnswer,
  type RawRequest,
  type Resource,
  type Update,
  type WatchEvent,
  type WatchQuery,
} from "../../adapters/kubeapi/index.ts";
import { bareRequest, type RouteAnswer, type RouteRequest } from "../../adapters/net/http-route.ts";
import { LogError } from "../../adapters/objectlog/index.ts";
import { type Abortable, withScope } from "../../lib/abort.ts";
import type { DeleteOptions, Status, TokenRequest } from "../../model/generated/types.ts";
import type { AccountTokens } from "../auth/account-tokens.ts";
import { type Kind, type RequestUser } from "../kinds/kind.ts";
import { kindForm, type OperationDeps, type Target, type WriteRequest } from "../operations/context.ts";
import { createObject } from "../operations/create.ts";
import { deleteObject } from "../operations/delete.ts";
import { getObject, listObjects } from "../operations/list.ts";
import { patchObject } from "../operations/patch.ts";
import { replaceObject, type UpdatePath, updatePath } from "../operations/update.ts";
import { watchObjects } from "../operations/watch.ts";
import type { Watch } from "../operations/watch-stream.ts";
import { noSuchResource, StatusError } from "../status/status-error.ts";
import type { JsonObject, StoredObject } from "../store/index.ts";
import { issueToken } from "../subresources/token.ts";

export interface LocalApiDeps extends OperationDeps {
  /** Answers requests that are more than an operation on an object. */
  readonly server: { handle(request: RouteRequest, user: RequestUser): Promise<RouteAnswer> };
  readonly tokens: AccountTokens;
}

export interface LocalApiOptions {
  readonly user: RequestUser;
  /** The name under which written fields are owned. */
  readonly manager: string;
}

/**
 * The local API for callers inside the process: the same operations as by HTTP, without bytes in between. What it returns
 * is shared with other readers and must not be changed.
 */
export class LocalApi implements KubeApi {
  constructor(
    private readonly deps: LocalApiDeps,
    private readonly options: LocalApiOptions,
  ) {}

  async get<T>(resource: Resource<T>, at: ObjectRef, { signal }: CallOptions): Promise<T> {
    return translated(signal, async () => {
      const target = this.target(resource, at);
      return objectOf<T>(target.kind, await getObject(this.deps, target, { signal }));
    });
  }

  async list<T>(resource: Resource<T>, query: ListQuery, { signal }: CallOptions): Promise<ObjectList<T>> {
    return translated(signal, async () => {
      const { resourceVersion = "", limit, continueToken = "", namespace = "", ...selectors } = query;
      const target = this.target(resource, { namespace, name: "" });
      const isVersioned = continueToken === "" && resourceVersion !== "" && resourceVersion !== "0";
      const page = await listObjects(this.deps, target, {
        ...selectors,
        resourceVersion: continueToken === "" ? resourceVersion : "",
        ...(isVersioned && { resourceVersionMatch: "NotOlderThan" }),
        ...(limit !== undefined && { limit }),
        continue: continueToken,
        signal,
      });
      const items = page.items.map((object) => objectOf<T>(target.kind, object));
      return { items, resourceVersion: String(page.revision), continueToken: page.continue };
    });
  }

  async watch<T>(
    resource: Resource<T>,
    query: WatchQuery,
    { signal }: Abortable,
  ): Promise<AsyncIterable<WatchEvent<T>>> {
    const { namespace = "", ...request } = query;
    return translated(signal, async () => {
      const target = this.target(resource, { namespace, name: "" });
      const options = { ...request, allowWatchBookmarks: true, signal };
      return eventsOf<T>(target.kind, await watchObjects(this.deps, target, options), signal);
    });
  }

  async create<T>(resource: Resource<T>, { object, ...at }: NewObject<T>, { signal }: CallOptions): Promise<T> {
    // What is not stored, such as a review, goes the way of all others.
    if (this.deps.kinds.find(resource) === undefined) return this.createRaw(resource, { object, ...at }, { signal });
    return translated(signal, async () => {
      const target = this.target(resource, { namespace: at.namespace ?? "", name: "" });
      const body = { value: object, duplicates: [] };
      const stored = await createObject(this.deps, target, { body, request: this.request(at.fieldManager) });
      return objectOf<T>(target.kind, stored);
    });
  }

  async update<T>(resource: Resource<T>, { object, ...at }: Update<T>, { signal }: CallOptions): Promise<T> {
    return translated(signal, async () => {
      const target = this.updateTarget(resource, at);
      const body = { value: object, duplicates: [] };
      const updated = await replaceObject(this.deps, target, { body, request: this.request(undefined) });
      return objectOf<T>(target.kind, updated.object);
    });
  }

  async patch<T>(resource: Resource<T>, change: Patch, { signal }: CallOptions): Promise<T> {
    return translated(signal, async () => {
      const target = this.updateTarget(resource, change);
      const { type, force } = change;
      const patch = {
        type,
        body: { value: change.body, duplicates: [] },
        request: this.request(change.fieldManager),
        ...(type === "apply" && force !== undefined && { isForced: force }),
      };
      return objectOf<T>(target.kind, (await patchObject(this.deps, target, patch)).object);
    });
  }

  async delete<T>(resource: Resource<T>, at: Deletion, { signal }: CallOptions): Promise<void> {
    const { uid, resourceVersion, graceSeconds, propagation } = at;
    const preconditions = {
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    };
    const options: DeleteOptions = {
      preconditions,
      ...(graceSeconds !== undefined && { gracePeriodSeconds: graceSeconds }),
      ...(propagation !== undefined && { propagationPolicy: propagation }),
    };
    await translated(signal, () =>
      deleteObject(this.deps, this.target(resource, at), { options, request: this.request(undefined) }),
    );
  }

  async createToken(at: Required<ObjectRef>, request: TokenRequest, { signal }: CallOptions): Promise<TokenRequest> {
    return translated(signal, async () => issueToken(this.deps, at, request));
  }

  async raw(request: RawRequest, { signal, timeoutMs }: CallOptions): Promise<RawAnswer> {
    const { method, path, body, contentType = "application/json", accept = "application/json" } = request;
    const headers = { accept, "content-type": contentType, "user-agent": this.options.manager };
    const ask = (limited: AbortSignal): Promise<RouteAnswer> =>
      this.deps.server.handle(
        bareRequest(method, path, { headers, signal: limited, readBody: async () => Buffer.from(body ?? "") }),
        this.options.user,
      );
    const limit = timeoutMs === undefined ? undefined : { clock: this.deps.clock, ms: timeoutMs };
    const answer = await withScope([signal], limit, ask);
    const bytes = await wholeBody(answer);
    const answered = { status: answer.status, headers: { ...answer.headers }, body: bytes };
    if (answer.status >= 400) throw errorOfAnswer(answered);
    return answered;
  }

  private async createRaw<T>(
    resource: Resource<T>,
    { object, namespace }: NewObject<T>,
    options: CallOptions,
  ): Promise<T> {
    const path = pathOf(resource, { ...(namespace !== undefined && { namespace }) });
    const { body } = await this.raw({ method: "POST", path, body: JSON.stringify(object) }, options);
    // The server made it of the kind of the resource.
    return JSON.parse(body.toString("utf8")) as T;
  }

  private target<T>(resource: Resource<T>, { namespace = "", name }: Partial<ObjectRef> & { name: string }): Target {
    const kind = this.deps.kinds.find(resource);
    if (kind === undefined) throw noSuchResource();
    return { kind, namespace: kind.resource.isNamespaced ? namespace : "", name };
  }

  private updateTarget<T>(
    resource: Resource<T>,
    at: ObjectRef & { readonly subresource?: string },
  ): Target & { readonly path: UpdatePath } {
    const target = this.target(resource, at);
    const path = updatePath(target.kind, at.subresource ?? "");
    if (path === undefined) throw noSuchResource();
    return { ...target, path };
  }

  private request(manager: string | undefined): WriteRequest {
    return { user: this.options.user, manager: manager ?? this.options.manager, validation: "Ignore" };
  }
}

/** Runs an operation; what it rejects with becomes an `ApiError`, as from a server. */
async function translated<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  try {
    return await work();
  } catch (error) {
    throw translate(error, signal);
  }
}

function translate(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof StatusError)
    return errorOfAnswer({ status: error.code, headers: {}, body: JSON.stringify(error.status) });
  if (error instanceof LogError) return new ApiError("Unavailable", error.message, { cause: error });
  return signal.aborted ? signal.reason : error;
}

function objectOf<T>(kind: Kind, stored: StoredObject): T {
  // The resource of the call decides the kind, and with it the type.
  return kindForm(kind, stored.shared() as JsonObject) as unknown as T;
}

async function* eventsOf<T>(kind: Kind, watch: Watch, signal: AbortSignal): AsyncGenerator<WatchEvent<T>, void> {
  for await (const items of watch) {
    for (const item of items) {
      signal.throwIfAborted();
      if (item.type === "ERROR") throw translate(statusError(item.status), signal);
      if (item.type === "BOOKMARK") yield { type: item.type, resourceVersion: String(item.revision) };
      else {
        const { type, object } = item;
        yield { type, object: objectOf<T>(kind, object), resourceVersion: String(object.revision) };
      }
    }
  }
  signal.throwIfAborted();
}

function statusError(status: Status): StatusError {
  const { code = 500, reason = "", message = "", details } = status;
  return new StatusError({ code, reason, message, ...(details && { details }) });
}

async function wholeBody({ body }: RouteAnswer): Promise<Buffer> {
  if (typeof body === "string") return Buffer.from(body);
  if (body instanceof Uint8Array) return Buffer.from(body);
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
