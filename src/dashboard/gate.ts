import { bearerToken } from "../adapters/net/bearer-token.ts";
import type { Guard } from "../adapters/net/http-dispatch.ts";
import { jsonAnswer, type RouteAnswer, type RouteRequest } from "../adapters/net/http-route.ts";
import { isLocalName } from "../adapters/net/local-name.ts";
import type { Abortable } from "../lib/abort.ts";
import type { PageRefusal, PageSection } from "../model/page-lines.ts";
import type { SessionSecrets, Sessions } from "./sessions.ts";

/** Admits requests to the page's data. */
export interface Gate {
  /** How a caller signs in. */
  readonly signIn: "link" | "token";
  /** Rejects a request that another site made, or that reached the agent under a foreign name; undefined if it may go on. */
  foreign(request: RouteRequest): RouteAnswer | undefined;
  /** Rejects a request that may not have this section; undefined if it may. */
  refusal(request: RouteRequest, section: PageSection): Promise<RouteAnswer | undefined>;
  /** True if a request that was admitted would be admitted again. It does not count as use of a session. */
  stillAdmits(request: RouteRequest, section: PageSection): Promise<boolean>;
  /** Calls back when somebody has lost access, where that is known at once. */
  onRevoked?(fn: () => void, options: Abortable): void;
}

export const SECTIONS: readonly PageSection[] = [
  ...(["pods", "usage", "logs", "exec", "images", "configuration", "machine"] as const),
];

/** The request to the main port that needs the same access as a section. */
const SAME_AS: Readonly<Record<PageSection, { readonly method: string; readonly path: string }>> = {
  pods: { method: "GET", path: "/pods" },
  usage: { method: "GET", path: "/stats/summary" },
  logs: { method: "GET", path: "/containerLogs" },
  exec: { method: "POST", path: "/exec" },
  // The main port has no list of images: `proxy`, as for every path that has no subresource of its own.
  images: { method: "GET", path: "/images" },
  configuration: { method: "GET", path: "/configz" },
  machine: { method: "GET", path: "/spec/" },
};

/** The sections that the caller may see, or why none. */
export async function sectionsOf(gate: Gate, request: RouteRequest): Promise<readonly PageSection[] | RouteAnswer> {
  const refusals = await Promise.all(SECTIONS.map((section) => gate.refusal(request, section)));
  const allowed = SECTIONS.filter((_, index) => refusals[index] === undefined);
  return allowed.length > 0 ? allowed : (refusals[0] ?? []);
}

/** The gate on loopback: a session of `kubelet open` may see everything, everyone else nothing. */
export function sessionGate(sessions: Sessions, cookieName: string): Gate {
  const secretsOf = ({ headers }: RouteRequest): SessionSecrets => {
    return { cookie: cookieOf(headers, cookieName) ?? "", key: bearerToken(headers) ?? "" };
  };
  return {
    signIn: "link",
    foreign: (request) =>
      isLocalName(request.headers["host"] ?? "") ? foreign(request) : refuse(403, "the host name is not a local one"),
    refusal: async (request) =>
      sessions.use(secretsOf(request))
        ? undefined
        : refuse(401, "run `kubelet open` on the node for a login link", "link"),
    stillAdmits: async (request) => sessions.isOpen(secretsOf(request)),
    onRevoked: (fn, options) => sessions.onEnd(fn, options),
  };
}

/** The gate elsewhere: whoever may have the same from the main port. */
export function guardGate(guard: Guard): Gate {
  const ask = (request: RouteRequest, section: PageSection) => guard({ ...request, ...SAME_AS[section] });
  return {
    signIn: "token",
    foreign,
    refusal: async (request, section) => {
      const refused = await ask(request, section);
      if (refused === undefined) return undefined;
      const message = typeof refused.body === "string" ? refused.body : "";
      return refuse(refused.status, message, refused.status === 401 ? "token" : undefined);
    },
    stillAdmits: async (request, section) => {
      const { status = 200 } = (await ask(request, section)) ?? {};
      // An API server that does not answer takes no access away.
      return status !== 401 && status !== 403;
    },
  };
}

/** An error answer. */
export function refuse(status: number, message: string, signIn?: "link" | "token"): RouteAnswer {
  const body: PageRefusal = { message, ...(signIn && { signIn }) };
  return { ...jsonAnswer(status, body), headers: { "Cache-Control": "no-store" } };
}

/** The value of a cookie. */
export function cookieOf(headers: RouteRequest["headers"], name: string): string | undefined {
  const pairs = (headers["cookie"] ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}

/** A page of another origin must not use the caller's cookie or certificate; other programs send neither header. */
function foreign({ headers }: RouteRequest): RouteAnswer | undefined {
  const site = headers["sec-fetch-site"];
  const isOtherSite = site !== undefined && site !== "same-origin" && site !== "none";
  const isOther = isOtherSite || !isSameOrigin(headers["origin"], headers["host"]);
  return isOther ? refuse(403, "requests of other origins are refused") : undefined;
}

function isSameOrigin(origin: string | undefined, host: string | undefined): boolean {
  if (origin === undefined) return true;
  return URL.canParse(origin) && new URL(origin).host === (host ?? "").toLowerCase();
}
