import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { get as httpGet } from "node:http";
import { get as httpsGet } from "node:https";
import type { Abortable } from "../../lib/abort.ts";
import { CodedError } from "../../lib/errors.ts";

/** A failed GET. Messages contain no header values and no credentials of the URL. */
export class HttpGetError extends CodedError<
  "InvalidUrl" | "Unreachable" | "Status" | "TooLarge" | "TooManyRedirects"
> {}

export interface HttpGetOptions extends Abortable {
  readonly headers: Readonly<Record<string, readonly string[]>>;
  /** Tag of the content that the caller has; empty for none. */
  readonly etag: string;
  readonly maxBytes: number;
}

/** The content with its tag (empty for none), or that it is unchanged. */
export type HttpGetAnswer =
  | { readonly kind: "unchanged" }
  | { readonly kind: "content"; readonly body: string; readonly etag: string };

const MOST_REDIRECTS = 10;

/** Gets a text over HTTP or HTTPS, one connection a call. Rejects with `HttpGetError` or the signal's reason. */
export async function fetchManifest(url: string, options: HttpGetOptions): Promise<HttpGetAnswer> {
  const first = parseUrl(url);
  let current = first;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    // Headers may be credentials: another server does not get them.
    const headers = current.origin === first.origin ? options.headers : {};
    const result = await requestOnce(current, { ...options, headers });
    if (!("location" in result)) return result;
    current = parseUrl(result.location, current);
  }
  throw new HttpGetError("TooManyRedirects", `more than ${MOST_REDIRECTS} redirects`);
}

function parseUrl(url: string, base?: URL): URL {
  if (!URL.canParse(url, base?.href)) throw new HttpGetError("InvalidUrl", "invalid URL");
  const parsed = new URL(url, base?.href);
  if (parsed.protocol === "http:" || parsed.protocol === "https:") return parsed;
  throw new HttpGetError("InvalidUrl", `unsupported URL scheme ${parsed.protocol}; use http:// or https://`);
}

function requestOnce(url: URL, options: HttpGetOptions): Promise<HttpGetAnswer | { readonly location: string }> {
  const { signal, etag } = options;
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const headers: OutgoingHttpHeaders = { ...(etag !== "" && { "If-None-Match": etag }) };
    for (const [name, values] of Object.entries(options.headers)) headers[name] = [...values];
    const fail = (error: unknown): void => reject(signal.aborted ? signal.reason : toError(error));
    // Without an agent no idle connection stays open between two polls.
    let request: ClientRequest;
    try {
      request = (url.protocol === "https:" ? httpsGet : httpGet)(url, { headers, signal, agent: false });
    } catch (error) {
      return fail(error);
    }
    request.on("error", fail);
    request.on("response", (response) => {
      readAnswer(response, options)
        .then(resolve, fail)
        .finally(() => request.destroy());
    });
  });
}

async function readAnswer(
  response: IncomingMessage,
  { maxBytes, etag }: HttpGetOptions,
): Promise<HttpGetAnswer | { readonly location: string }> {
  response.on("error", () => undefined);
  const { statusCode = 0, headers } = response;
  if (statusCode === 304 && etag !== "") return { kind: "unchanged" };
  if ([301, 302, 303, 307, 308].includes(statusCode) && headers.location !== undefined) {
    return { location: headers.location };
  }
  if (statusCode !== 200) {
    throw new HttpGetError("Status", `the server answered ${statusCode} ${response.statusMessage ?? ""}`.trimEnd());
  }
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of response) {
    // A response without encoding gives Buffers.
    const bytes = chunk as Buffer;
    total += bytes.length;
    if (total > maxBytes) throw new HttpGetError("TooLarge", `the response is larger than ${maxBytes} bytes`);
    chunks.push(bytes);
  }
  return { kind: "content", body: Buffer.concat(chunks).toString("utf8"), etag: headers.etag ?? "" };
}

function toError(error: unknown): Error {
  if (error instanceof HttpGetError) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new HttpGetError("Unreachable", `incomplete response: ${text}`, { cause: error });
}
