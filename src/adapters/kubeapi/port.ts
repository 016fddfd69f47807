import type { Abortable } from "../../lib/abort.ts";
import { CodedError } from "../../lib/errors.ts";
import type { ObjectMeta, Status, TokenRequest } from "../../model/generated/types.ts";
import type { Resource } from "./resources.ts";

/**
 * The Kubernetes API as the agent needs it. Implemented by `ApiClient` (HTTP/2); `test/contract/kubeapi-suite.ts` is
 * passed by it on a real kube-apiserver and on a scripted server. Every method may reject with an `ApiError`, or with
 * the signal's reason when that aborts. Nothing is cached and nothing is retried here, except what is safe: requests
 * that the server did not begin to process, those with a Retry-After within the timeout, and reads.
 */
export interface KubeApi {
  get<T>(resource: Resource<T>, at: ObjectRef, options: CallOptions): Promise<T>;
  /**
   * Reads several objects with a fraction of the work of `get`, and without its care: undefined for each that has to be read
   * by `get`, because it is missing, refused or was not answered.
   */
  getTogether?<T>(
    resource: Resource<T>,
    objects: readonly ObjectRef[],
    options: Abortable,
  ): Promise<readonly (T | undefined)[]>;
  /** One page; `continueToken` of the answer is empty on the last. */
  list<T>(resource: Resource<T>, query: ListQuery, options: CallOptions): Promise<ObjectList<T>>;
  /**
   * Changes from `resourceVersion` on. Resolves when the server accepted the watch; the iteration ends when the server
   * ends it, throws `ApiError` (`Gone` when the version is too old, `Unavailable` when the connection was cut,
   * `Garbage` when a line cannot be read) and leaving the loop ends the watch.
   */
  watch<T>(resource: Resource<T>, query: WatchQuery, options: Abortable): Promise<AsyncIterable<WatchEvent<T>>>;
  create<T>(resource: Resource<T>, object: NewObject<T>, options: CallOptions): Promise<T>;
  /** Replaces the object (or its sub-resource); with a `resourceVersion` the server rejects a stale write. */
  update<T>(resource: Resource<T>, change: Update<T>, options: CallOptions): Promise<T>;
  patch<T>(resource: Resource<T>, change: Patch, options: CallOptions): Promise<T>;
  /** A deleted object rejects with `NotFound`, another UID with `Conflict`. */
  delete<T>(resource: Resource<T>, at: Deletion, options: CallOptions): Promise<void>;
  /** A token of the service account that `at` names. */
  createToken(at: Required<ObjectRef>, request: TokenRequest, options: CallOptions): Promise<TokenRequest>;
  /** Any other request. Responses below 400 resolve; others reject. */
  raw(request: RawRequest, options: CallOptions): Promise<RawAnswer>;
}

export interface CallOptions extends Abortable {
  /** Timeout of the whole call in milliseconds, without the wait for the rate limit; defaults to the client's. */
  readonly timeoutMs?: number;
}

export interface ObjectRef {
  /** Missing for cluster-scoped kinds. */
  readonly namespace?: string;
  readonly name: string;
}

export interface Selection {
  /** Missing: all namespaces, or a cluster-scoped kind. */
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface ListQuery extends Selection {
  /** Empty or missing: the newest state. `"0"`: whatever the server has at hand. Else: not older than this. */
  readonly resourceVersion?: string;
  readonly limit?: number;
  readonly continueToken?: string;
}

export interface WatchQuery extends Selection {
  readonly resourceVersion: string;
  /** The server ends the watch after about this long. */
  readonly timeoutSeconds: number;
}

export interface ObjectList<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
  readonly continueToken: string;
}

/** A bookmark has no object: everything up to its version has been delivered. */
export type WatchEvent<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T; readonly resourceVersion: string }
  | { readonly type: "BOOKMARK"; readonly resourceVersion: string };

export type SubResource = "status";

export interface NewObject<T> {
  readonly namespace?: string;
  /** `apiVersion` and `kind` are filled in. */
  readonly object: Omit<T, "apiVersion" | "kind">;
  readonly fieldManager?: string;
}

export interface Update<T> extends ObjectRef {
  readonly object: T;
  readonly subresource?: SubResource;
}

/** `apply` creates what is missing and needs a `fieldManager`. */
export interface Patch extends ObjectRef {
  readonly type: "json" | "merge" | "strategic" | "apply";
  readonly body: unknown;
  readonly subresource?: SubResource;
  readonly fieldManager?: string;
  /** With `apply`: takes over fields that another manager owns. */
  readonly force?: boolean;
}

export interface Deletion extends ObjectRef {
  readonly uid?: string;
  readonly resourceVersion?: string;
  /** 0 removes the object at once. Missing: as the object says. */
  readonly graceSeconds?: number;
  readonly propagation?: "Orphan" | "Background" | "Foreground";
}

export interface RawRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with its query, from `/` on. */
  readonly path: string;
  readonly body?: string;
  readonly contentType?: string;
  readonly accept?: string;
}

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** `Unavailable`, `Timeout` and `TooManyRequests` are worth a retry; `Garbage` is an answer that cannot be read. */
export type ApiErrorCode =
  | "NotFound"
  | "Conflict"
  | "AlreadyExists"
  | "Forbidden"
  | "Unauthorized"
  | "Gone"
  | "TooManyRequests"
  | "Unavailable"
  | "Timeout"
  | "Invalid"
  | "Garbage"
  | "Unknown";

/** Facts of an error beside its message. */
export interface ApiErrorFacts {
  /** HTTP status; 0 when there was no answer. */
  readonly httpStatus: number;
  /** The body, when it was a Status object. */
  readonly status?: Status;
  /** Retry-After in milliseconds. */
  readonly retryAfterMs?: number;
}

/** Any failure of the API. `message` is the server's own words, or what happened to the connection. */
export class ApiError extends CodedError<ApiErrorCode> {
  readonly httpStatus: number;
  readonly status: Status | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(code: ApiErrorCode, message: string, options: { cause?: unknown; facts?: ApiErrorFacts } = {}) {
    super(code, message, options);
    this.httpStatus = options.facts?.httpStatus ?? 0;
    this.status = options.facts?.status;
    this.retryAfterMs = options.facts?.retryAfterMs;
  }

  /** True if the same request may succeed later. */
  get isRetryable(): boolean {
    return this.code === "Unavailable" || this.code === "Timeout" || this.code === "TooManyRequests";
  }
}

/** What every kind has. */
export interface KubeObject {
  readonly metadata: ObjectMeta;
}
