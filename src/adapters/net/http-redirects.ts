import type { Abortable } from "../../lib/abort.ts";
import { type HttpRequest, hostAndPort, urlOf } from "../../model/http-action.ts";
import type { HttpAnswer } from "./http-answer.ts";
import { ProbeNetError } from "./probe-error.ts";

type Get = (request: HttpRequest, options: Abortable) => Promise<HttpAnswer>;

/** Requests made for one probe, the first included. */
const MOST_REQUESTS = 10;
const REDIRECTS = [301, 302, 303, 307, 308];

export interface RedirectOptions extends Abortable {
  /** Whether a redirect leads to where one may follow; one that does not is answered as it is. */
  mayFollow(next: HttpRequest, first: HttpRequest): boolean;
}

/** Probes stay on the host that they were sent to; the port may be another. */
export function isSameHost(next: HttpRequest, first: HttpRequest): boolean {
  return next.host === first.host;
}

/** A GET that goes where it is sent. Rejects as `get` does, and with `Redirects` when there is no end to it. */
export async function followRedirects(get: Get, first: HttpRequest, options: RedirectOptions): Promise<HttpAnswer> {
  let request = first;
  for (let made = 1; ; made++) {
    const answer = await get(request, options);
    if (!REDIRECTS.includes(answer.status) || answer.location === undefined || answer.location === "") return answer;
    const next = redirected(request, answer.location);
    if (!options.mayFollow(next, first)) return answer;
    if (made === MOST_REQUESTS) throw new ProbeNetError("Redirects", `stopped after ${MOST_REQUESTS} redirects`);
    request = next;
  }
}

/** The request that a Location asks for. The Host header of a probe goes along only while the Location names no host. */
export function redirected(request: HttpRequest, location: string): HttpRequest {
  const base = urlOf(request);
  if (!URL.canParse(location, base)) {
    throw new ProbeNetError("Malformed", `failed to parse Location header ${JSON.stringify(location)}`);
  }
  const url = new URL(location, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ProbeNetError("Malformed", `unsupported protocol scheme ${JSON.stringify(url.protocol.slice(0, -1))}`);
  }
  const scheme = url.protocol === "https:" ? "https" : "http";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? (scheme === "https" ? 443 : 80) : Number(url.port);
  const isRelative = !/^([A-Za-z][A-Za-z0-9+.-]*:|\/\/)/.test(location);
  const hostHeader = isRelative ? request.hostHeader : url.port === "" ? url.host : hostAndPort(host, port);
  return { ...request, scheme, host, port, hostHeader, target: `${url.pathname}${url.search}` };
}
