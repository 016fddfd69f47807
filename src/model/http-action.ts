import { resolvePort } from "./container-port.ts";
import type { Container, HTTPGetAction } from "./generated/types.ts";

/** A GET as it goes over the wire, made from the `httpGet` of a probe or a hook. */
export interface HttpRequest {
  readonly scheme: "http" | "https";
  /** Where to connect: an address or a name. */
  readonly host: string;
  readonly port: number;
  /** Path and query as they stand in the request line. */
  readonly target: string;
  /** The value of the Host header. */
  readonly hostHeader: string;
  readonly headers: readonly (readonly [string, string])[];
}

/** Longest path with its query, in bytes; no server takes a longer request line. */
const MOST_TARGET_BYTES = 64 * 1024;

/** The pod and the client that a request is built for. */
export interface HttpActionFacts {
  readonly podIp: string;
  readonly container: Pick<Container, "ports">;
  readonly userAgent: string;
}

/** Returns the request that an `httpGet` asks for. Throws when its host, port, path or a header cannot be used. */
export function httpActionRequest(action: HTTPGetAction, facts: HttpActionFacts): HttpRequest {
  const host = action.host === undefined || action.host === "" ? facts.podIp : action.host;
  const port = resolvePort(action.port, facts.container);
  const given = (action.httpHeaders ?? []).map(({ name, value }) => [name, value] as const);
  for (const [name, value] of given) checkHeader(name, value);
  const named = given.findLast(([name, value]) => name.toLowerCase() === "host" && value !== "")?.[1];
  const hostHeader = named ?? hostAndPort(host, port);
  if (!/^[\x21-\x7e]+$/.test(hostHeader)) {
    throw new Error(
      `invalid host ${JSON.stringify(hostHeader)}: only printable ASCII is allowed, write other names in punycode`,
    );
  }
  return {
    scheme: action.scheme?.toLowerCase() === "https" ? "https" : "http",
    host,
    port,
    target: requestTarget(action.path ?? "/"),
    hostHeader,
    headers: [
      ...orDefault(given, "User-Agent", facts.userAgent),
      ...orDefault(given, "Accept", "*/*"),
      ...given.filter(([name]) => !["host", "user-agent", "accept"].includes(name.toLowerCase())),
    ],
  };
}

/** The request as one URL, for messages. */
export function urlOf({ scheme, host, port, target }: HttpRequest): string {
  return `${scheme}://${hostAndPort(host, port)}${target}`;
}

/** `HOST:PORT`, an IPv6 address in brackets. */
export function hostAndPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns the header as given, else the default; an empty value removes it. */
function orDefault(
  given: readonly (readonly [string, string])[],
  name: string,
  value: string,
): (readonly [string, string])[] {
  const own = given.filter(([key]) => key.toLowerCase() === name.toLowerCase());
  return own.length === 0 ? [[name, value]] : own.filter(([, text]) => text !== "");
}

function checkHeader(name: string, value: string): void {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) throw new Error(`invalid header field name ${JSON.stringify(name)}`);
  if (/[\0-\x08\x0a-\x1f\x7f]/.test(value)) throw new Error(`invalid header field value for ${JSON.stringify(name)}`);
}

/**
 * Path and query of a `path` that is a URL reference: what stands behind `?` is sent as the query, a fragment is not
 * sent. A text that is no reference is a bare path, with all that a path may not hold percent-encoded. Throws if it is
 * longer than 64 KiB.
 */
export function requestTarget(reference: string): string {
  const bytes = Buffer.byteLength(reference);
  if (bytes > MOST_TARGET_BYTES) {
    throw new Error(`invalid path of ${bytes} bytes: at most ${MOST_TARGET_BYTES} bytes are allowed`);
  }
  return parseReference(reference) ?? rooted(encodePath(Buffer.from(reference, "utf8")));
}

function parseReference(text: string): string | undefined {
  // oxlint-disable-next-line no-control-regex
  if (/[\0-\x1f\x7f]/.test(text)) return undefined;
  const [beforeFragment = ""] = text.split("#", 1);
  const mark = beforeFragment.indexOf("?");
  const query = mark === -1 ? "" : encodeQuery(beforeFragment.slice(mark));
  const whole = mark === -1 ? beforeFragment : beforeFragment.slice(0, mark);
  // A scheme and a host are replaced by those of the probe.
  const path = whole.replace(/^([A-Za-z][A-Za-z0-9+.-]*:(?=\/))?(\/\/[^/]*)?/, "");
  if (!path.startsWith("/") && (path.split("/", 1)[0] ?? "").includes(":")) return undefined;
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined;
  const isClean = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/[\]%]*$/.test(path);
  return rooted(isClean ? path : encodePath(decode(path))) + query;
}

function rooted(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

function decode(path: string): Buffer {
  const bytes: number[] = [];
  const text = Buffer.from(path, "utf8");
  for (let i = 0; i < text.length; i++) {
    const byte = text[i] ?? 0;
    if (byte !== 0x25) bytes.push(byte);
    else {
      bytes.push(Number.parseInt(text.toString("latin1", i + 1, i + 3), 16));
      i += 2;
    }
  }
  return Buffer.from(bytes);
}

/** Percent-encodes what is no printable ASCII; the rest of a query is sent as it was written. */
function encodeQuery(query: string): string {
  if (/^[\x21-\x7e]*$/.test(query)) return query;
  return Array.from(Buffer.from(query, "utf8"), (byte) =>
    byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : percentEncoded(byte),
  ).join("");
}

function percentEncoded(byte: number): string {
  return `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

/** Each byte as it stands in a path. */
const PATH_BYTES: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte);
  return /[A-Za-z0-9\-._~$&+,/:;=@]/.test(char) ? char : percentEncoded(byte);
});

/** Percent-encodes each byte that a path may not hold. */
function encodePath(bytes: Buffer): string {
  let encoded = "";
  for (const byte of bytes) encoded += PATH_BYTES[byte];
  return encoded;
}
