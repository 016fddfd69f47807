import { CodedError } from "../../lib/errors.ts";

/** A request for a handler: no sockets, no streams of Node. */
export interface RouteRequest {
  readonly method: string;
  /** The decoded path without the query. */
  readonly path: string;
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly query: URLSearchParams;
  /** By lower-case name; a repeated header is joined by commas. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The certificate that the client presented, trusted or not. Only on TLS. */
  readonly peer?: ClientCertificate | undefined;
  /** The body, read to its end. Rejects with `BodyTooLarge` past `limit` bytes. */
  readBody(limit: number): Promise<Buffer>;
  /** Aborts when the client disconnects or the listener closes. */
  readonly signal: AbortSignal;
  /** Counts memory that the answer takes until it was sent; false: there is none left. Missing inside the process. */
  hold?: ((bytes: number) => boolean) | undefined;
  /** Announces that the answer is a proxied upgrade: its target is dialed early. Only on upgrade requests. */
  expectUpgrade?: (() => void) | undefined;
}

/** The identity in a client certificate, and whether it is trusted. */
export interface ClientCertificate {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Values of Kubernetes' attribute for the UID of a user. */
  readonly uids: readonly string[];
  /** SHA-256 of the certificate, lower-case hex. */
  readonly fingerprint: string;
  /** True if it is signed by a current authority, for client authentication, and valid at this time. */
  isTrusted(wallMs: number): boolean;
}

/** A request body over the limit. */
export class BodyTooLarge extends CodedError<"TooLarge"> {}

/** Where a pushed body goes. */
export interface BodySink {
  /** Sends bytes, which nobody may change later; false if no more may come before `resume`. */
  write(bytes: Uint8Array): boolean;
  end(): void;
  /** Ends it as broken: the client sees no ordinary end. */
  fail(error: unknown): void;
}

/**
 * A body whose pieces are sent as they come, without a promise for each: the same bytes may go to a hundred clients. Iterated
 * over by those who have no connection.
 */
export interface PushedBody extends AsyncIterable<Uint8Array> {
  /** Begins to send, and stops at the end of the sink or when `stop` is called. */
  sendTo(sink: BodySink): { resume(): void; stop(): void };
}

/** The answer as data. A streamed body is pulled only as fast as the client reads, and abandoned when it disconnects. */
export interface RouteAnswer {
  readonly status: number;
  /** Defaults to `text/plain; charset=utf-8`. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array> | PushedBody;
  /** Proxies the client's upgraded connection to this URL instead, byte for byte; all above is ignored. */
  readonly upgradeTo?: string;
  /** Ends the answer or the proxied connection when it aborts, also while the client does not read. */
  readonly until?: AbortSignal;
}

/** A path in find-my-way's syntax, and its handler. */
export interface HttpRoute {
  /** `any` answers every method; `GET` alone does not answer HEAD. */
  readonly methods: readonly string[] | "any";
  readonly path: string;
  handle(request: RouteRequest): RouteAnswer | Promise<RouteAnswer>;
}

/** A plain text answer. */
export function textAnswer(status: number, body: string): RouteAnswer {
  return { status, body };
}

/** A JSON answer. */
export function jsonAnswer(status: number, value: unknown): RouteAnswer {
  return { status, type: "application/json", body: JSON.stringify(value) };
}

/** Parses a raw request target into path and query, or returns why it is refused: decoded parameters must not escape. */
export function readTarget(target: string): { path: string; query: URLSearchParams } | { refused: string } {
  const raw = target.startsWith("/") ? target : originForm(target);
  if (raw === undefined) return { refused: "the request target is not a path" };
  const mark = raw.indexOf("?");
  const path = mark < 0 ? raw : raw.slice(0, mark);
  if (/%2f|%5c|\\/i.test(path)) return { refused: "encoded slashes are refused" };
  let decoded: string;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    return { refused: "the path is not valid percent-encoding" };
  }
  if (decoded.includes("\0")) return { refused: "NUL is refused" };
  if (decoded.split("/").some((part) => part === ".." || part === ".")) return { refused: "`..` is refused" };
  return { path, query: new URLSearchParams(mark < 0 ? "" : raw.slice(mark + 1)) };
}

/** The path of the absolute form that proxies send, without normalization. */
function originForm(target: string): string | undefined {
  const match = /^https?:\/\/[^/?#]*(\/[^#]*)?$/i.exec(target);
  return match === null ? undefined : (match[1] ?? "/");
}

/** A request for a handler from a method and a target; for tests and callers inside the process. */
export function bareRequest(method: string, target: string, more: Partial<RouteRequest> = {}): RouteRequest {
  const url = new URL(target, "http://localhost");
  return {
    method,
    path: decodeURIComponent(url.pathname),
    params: {},
    query: url.searchParams,
    headers: {},
    readBody: async () => Buffer.alloc(0),
    signal: new AbortController().signal,
    ...more,
  };
}
