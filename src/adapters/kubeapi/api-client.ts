import { type Abortable, AbortScope, TimeLimitError, withScope } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import type { TokenBucket } from "../../lib/token-bucket.ts";
import type { TokenRequest } from "../../model/generated/types.ts";
import { errorOfAnswer, errorOfConnection } from "./api-error.ts";
import { readBody, readLines } from "./body.ts";
import { decodeEvent, decodeList, decodeObject } from "./decode.ts";
import type {
  CallOptions,
  Deletion,
  KubeApi,
  ListQuery,
  NewObject,
  ObjectList,
  ObjectRef,
  Patch,
  RawAnswer,
  RawRequest,
  Update,
  WatchEvent,
  WatchQuery,
} from "./port.ts";
import { ApiError } from "./port.ts";
import { deleteBody, listPath, PATCH_TYPES, patchPath, watchPath } from "./request.ts";
import { apiVersionOf, pathOf, type Resource, SERVICE_ACCOUNTS } from "./resources.ts";
import type { Transport } from "./transport.ts";
import { ConnectionLost, type WireAnswer, type WireRequest } from "./wire.ts";

export interface ApiClientDeps {
  readonly transport: Transport;
  readonly clock: Clock;
  /** Missing for the heartbeat, which is not rate limited. */
  readonly bucket?: TokenBucket;
}

export interface ApiClientOptions {
  readonly userAgent: string;
  /** Timeout of a call that sets none, in milliseconds. */
  readonly timeoutMs: number;
}

/** Number of retries that the server may ask for with Retry-After. */
const MAX_RETRIES = 10;
/** Timeout for the response head of a watch, in milliseconds: the server may wait until its cache has caught up. */
const WATCH_START_LIMIT_MS = 30_000;
/** Time limit of several reads together, in milliseconds; what is not answered by then is asked for one by one. */
const TOGETHER_LIMIT_MS = 10_000;
const JSON_TYPE = "application/json";

/** The API over one `Transport`. Cheap: make one for each rate limit (calls, events, heartbeat). */
export class ApiClient implements KubeApi {
  constructor(
    private readonly deps: ApiClientDeps,
    private readonly options: ApiClientOptions,
  ) {}

  async get<T>(resource: Resource<T>, at: ObjectRef, options: CallOptions): Promise<T> {
    return decodeObject(resource, await this.text({ method: "GET", path: pathOf(resource, at) }, options));
  }

  async getTogether<T>(
    resource: Resource<T>,
    objects: readonly ObjectRef[],
    { signal }: Abortable,
  ): Promise<readonly (T | undefined)[]> {
    const { bucket, clock, transport } = this.deps;
    for (const _ of objects) await bucket?.take({ signal });
    const { headers } = this.wire({ method: "GET", path: "" });
    const paths = objects.map((at) => pathOf(resource, at));
    try {
      const limit = { clock, ms: TOGETHER_LIMIT_MS };
      const bodies = await withScope([signal], limit, (inner) =>
        transport.readAll({ paths, headers }, { signal: inner }),
      );
      signal.throwIfAborted();
      return bodies.map((body) => body && decodeObject(resource, body.toString("utf8")));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ApiError || error instanceof TimeLimitError || error instanceof ConnectionLost) {
        return objects.map(() => undefined);
      }
      throw error;
    }
  }

  async list<T>(resource: Resource<T>, query: ListQuery, options: CallOptions): Promise<ObjectList<T>> {
    return decodeList(resource, await this.text({ method: "GET", path: listPath(resource, query) }, options));
  }

  async watch<T>(
    resource: Resource<T>,
    query: WatchQuery,
    { signal }: Abortable,
  ): Promise<AsyncIterable<WatchEvent<T>>> {
    await this.deps.bucket?.take({ signal });
    const scope = new AbortScope([signal]);
    const limit = this.deps.clock.after(WATCH_START_LIMIT_MS, () =>
      scope.abort(new TimeLimitError(WATCH_START_LIMIT_MS)),
    );
    try {
      const wire = this.wire({ method: "GET", path: watchPath(resource, query) });
      const answer = await this.deps.transport.send("watch", wire, scope);
      if (answer.status !== 200) await this.refuse(answer, scope.signal);
      return events(resource, answer, scope);
    } catch (error) {
      scope.dispose();
      throw translate(error, scope.signal);
    } finally {
      limit.cancel();
    }
  }

  async create<T>(resource: Resource<T>, { object, ...at }: NewObject<T>, options: CallOptions): Promise<T> {
    const query = at.fieldManager === undefined ? "" : `?fieldManager=${encodeURIComponent(at.fieldManager)}`;
    const body = JSON.stringify({ apiVersion: apiVersionOf(resource), kind: resource.kind, ...object });
    const path = pathOf(resource, { namespace: at.namespace }) + query;
    return decodeObject(resource, await this.text({ method: "POST", path, body }, options));
  }

  async update<T>(resource: Resource<T>, { object, ...at }: Update<T>, options: CallOptions): Promise<T> {
    const body = JSON.stringify({ apiVersion: apiVersionOf(resource), kind: resource.kind, ...object });
    return decodeObject(resource, await this.text({ method: "PUT", path: pathOf(resource, at), body }, options));
  }

  async patch<T>(resource: Resource<T>, change: Patch, options: CallOptions): Promise<T> {
    const request = {
      method: "PATCH",
      path: patchPath(resource, change),
      body: JSON.stringify(change.body),
      contentType: PATCH_TYPES[change.type],
    } as const;
    return decodeObject(resource, await this.text(request, options));
  }

  async delete<T>(resource: Resource<T>, at: Deletion, options: CallOptions): Promise<void> {
    await this.raw({ method: "DELETE", path: pathOf(resource, at), body: deleteBody(at) }, options);
  }

  async createToken(at: Required<ObjectRef>, request: TokenRequest, options: CallOptions): Promise<TokenRequest> {
    const body = JSON.stringify({ ...request, apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest" });
    const path = pathOf(SERVICE_ACCOUNTS, { ...at, subresource: "token" });
    return decodeObject(TOKEN_REQUESTS, await this.text({ method: "POST", path, body }, options));
  }

  async raw(request: RawRequest, options: CallOptions): Promise<RawAnswer> {
    await this.deps.bucket?.take(options);
    const { clock } = this.deps;
    const ms = options.timeoutMs ?? this.options.timeoutMs;
    const until = clock.now().mono + ms;
    return withScope([options.signal], { clock, ms }, async (signal) => {
      try {
        return await this.call(this.wire(request), until, signal);
      } catch (error) {
        throw translate(error, signal);
      }
    });
  }

  private async text(request: RawRequest, options: CallOptions): Promise<string> {
    return (await this.raw(request, options)).body.toString("utf8");
  }

  /** Sends until there is a final response: new credentials are tried once, a Retry-After is honoured if it fits. */
  private async call(wire: WireRequest, until: number, signal: AbortSignal): Promise<RawAnswer> {
    let isFresh = false;
    for (let delays = 0; ; ) {
      const answer = await this.deps.transport.send("call", wire, { signal });
      const body = await readBody(answer, signal);
      if (answer.status < 400) return { status: answer.status, headers: answer.headers, body };
      const error = errorOfAnswer({ ...answer, body });
      if (answer.status === 401 && !isFresh) {
        isFresh = true;
        this.deps.transport.refreshCredentials();
        continue;
      }
      const wait = retryAfter(error);
      const fits = wait !== undefined && this.deps.clock.now().mono + wait < until;
      if (!fits || ++delays > MAX_RETRIES) throw error;
      await this.deps.clock.sleep(wait, { signal });
    }
  }

  private async refuse(answer: WireAnswer, signal: AbortSignal): Promise<never> {
    const error = errorOfAnswer({ ...answer, body: await readBody(answer, signal) });
    if (answer.status === 401) this.deps.transport.refreshCredentials();
    throw error;
  }

  private wire({ method, path, body, contentType, accept }: RawRequest): WireRequest {
    return {
      method,
      path,
      headers: {
        accept: accept ?? JSON_TYPE,
        "user-agent": this.options.userAgent,
        ...(body !== undefined && { "content-type": contentType ?? JSON_TYPE }),
      },
      ...(body !== undefined && { body }),
    };
  }
}

const TOKEN_REQUESTS: Resource<TokenRequest> = {
  group: "authentication.k8s.io",
  version: "v1",
  plural: "tokenrequests",
  kind: "TokenRequest",
  isNamespaced: true,
};

async function* events<T>(
  resource: Resource<T>,
  answer: WireAnswer,
  scope: AbortScope,
): AsyncGenerator<WatchEvent<T>, void> {
  try {
    for await (const line of readLines(answer, scope.signal)) yield decodeEvent(resource, line);
  } finally {
    scope.dispose();
  }
}

/** The Retry-After of a response in milliseconds. Only 429 and 503 guarantee that nothing was done. */
function retryAfter(error: ApiError): number | undefined {
  return error.httpStatus === 429 || error.httpStatus === 503 ? error.retryAfterMs : undefined;
}

/** Maps our own timeout to `Timeout`, a lost connection to `Unavailable`; an abort of the caller is passed on. */
function translate(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof ApiError) return error;
  if (signal.reason instanceof TimeLimitError) {
    return new ApiError("Timeout", `timed out: no response within ${signal.reason.limitMs / 1000} s`, { cause: error });
  }
  if (signal.aborted) return signal.reason;
  return errorOfConnection(error, "connection to API server was lost");
}
