import { CodedError } from "../../lib/errors.ts";

/** A request as the features see it: no sockets, no streams of Node's. */
export interface RouteRequest {
  readonly method: string;
  /** The decoded path without the query. */
  readonly path: string;
  readonly params: Readonly<Record<string, string | undefined>>;
  readonly query: URLSearchParams;
  /** By lower-case name; a repeated header is joined by commas. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The certificate that the client showed, whether it is believed or not. Only on TLS. */
  readonly peer?: ClientCertificate | undefined;
  /** The body, read to its end. Rejects with `BodyTooLarge` past `limit` bytes. */
  readBody(limit: number): Promise<Buffer>;
  /** Aborts when the client leaves or the listener closes. */
  readonly signal: AbortSignal;
  /** The answer will lead on, most likely to where the last one did: a connection there is begun. Of upgrades only. */
  expectUpgrade?: (() => void) | undefined;
}

/** Who a client says it is, and whether that is true at this moment. */
export interface ClientCertificate {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Values of Kubernetes' attribute for the UID of a user. */
  readonly uids: readonly string[];
  /** SHA-256 of the certificate, lower-case hex. */
  readonly fingerprint: string;
  /** Signed by an authority of now, for clients, and within its time. */
  isTrusted(wallMs: number): boolean;
}

/** A request body over the limit. */
export class BodyTooLarge extends CodedError<"TooLarge"> {}

/** The answer as data. A streamed body is pulled only as fast as the client reads, and left when it goes away. */
export interface RouteAnswer {
  readonly status: number;
  /** `text/plain; charset=utf-8` unless said. */
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
  /** Hands the client's upgraded connection to the server of this URL instead, byte for byte; all above is ignored. */
  readonly upgradeTo?: string;
}

/** One path (find-my-way's syntax) and what answers it. */
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

/** What is wrong with a raw request target, or its path and query. Decoded parameters must not be able to escape. */
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

/** A proxy's absolute form, cut to the path without normalising it. */
function originForm(target: string): string | undefined {
  const match = /^https?:\/\/[^/?#]*(\/[^#]*)?$/i.exec(target);
  return match === null ? undefined : (match[1] ?? "/");
}

/** A request as handlers get it, made from a method and a target; for tests and for callers inside the process. */
export function bareRequest(method: string, target: string, more: Partial<RouteRequest> = {}): RouteRequest {
  const url = new URL(target, "http://localhost");
  return {
    ...{ method, path: decodeURIComponent(url.pathname), params: {}, query: url.searchParams, headers: {} },
    readBody: async () => Buffer.alloc(0),
    signal: new AbortController().signal,
    ...more,
  };
}
