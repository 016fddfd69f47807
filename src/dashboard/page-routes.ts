import type { RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import { jsonAnswer } from "../adapters/net/http-route.ts";
import { messageOf } from "../lib/errors.ts";
import type { PageHello, PageSection } from "../model/page-lines.ts";
import { execAnswer, logAnswer } from "./container-routes.ts";
import { cookieOf, type Gate, refuse, sectionsOf } from "./gate.ts";
import { overviewLines } from "./overview-stream.ts";
import type { PageDeps, PageOptions } from "./page-deps.ts";
import { podLines } from "./pod-stream.ts";
import type { Sessions } from "./sessions.ts";
import { NO_SNIFF } from "./static-routes.ts";

/** The largest body of a login in bytes. */
const MOST_BODY = 1024;
const PRIVATE = { "Cache-Control": "no-store", ...NO_SNIFF } as const;

export interface PageApi {
  readonly deps: PageDeps;
  readonly options: PageOptions;
  readonly gate: Gate;
  /** Only where sessions are used. */
  readonly sessions?: { readonly store: Sessions; readonly cookieName: string } | undefined;
}

type Handler = (request: RouteRequest) => RouteAnswer | Promise<RouteAnswer>;

/** The handlers of the page's data by method and path below `/page/api`. Loaded at the first request. */
export function pageHandlers(api: PageApi): Readonly<Record<string, Handler>> {
  const { deps, gate } = api;
  const guarded =
    (section: PageSection, handler: Handler): Handler =>
    async (request) =>
      gate.foreign(request) ?? (await gate.refusal(request, section)) ?? handler(request);
  const debugging = (handler: Handler): Handler => {
    return (request) => (deps.hasDebugging() ? handler(request) : refuse(405, "enableDebuggingHandlers is false"));
  };
  const data =
    (read: (request: RouteRequest) => unknown): Handler =>
    async (request) => {
      try {
        return { ...jsonAnswer(200, await read(request)), headers: PRIVATE };
      } catch (error) {
        request.signal.throwIfAborted();
        return refuse(503, messageOf(error));
      }
    };
  return {
    "GET stream": (request) => streamed(api, request, (hello) => overviewLines(deps, hello, request)),
    "GET pods/:uid": guarded("pods", (request) => {
      const uid = request.params["uid"] ?? "";
      if (deps.view.summary(uid) === undefined) return refuse(404, "there is no such pod");
      return streamed(api, request, (hello) => podLines(deps, { uid, hello }, request));
    }),
    "GET logs/:uid/:container": guarded(
      "logs",
      debugging((request) => logAnswer(deps, request)),
    ),
    "GET exec/:uid/:container": guarded(
      "exec",
      debugging((request) => execAnswer(deps, request)),
    ),
    "GET images": guarded(
      "images",
      data((request) => deps.images(request)),
    ),
    "GET node": guarded(
      "usage",
      data((request) => deps.node(request)),
    ),
    "GET settings": guarded(
      "configuration",
      data(() => deps.settings()),
    ),
    "GET machine": guarded(
      "machine",
      data(() => deps.machine()),
    ),
    "POST login": (request) => gate.foreign(request) ?? login(api, request),
    "POST logout": (request) => gate.foreign(request) ?? logout(api, request),
  };
}

async function streamed(
  { deps, options, gate }: PageApi,
  request: RouteRequest,
  lines: (hello: PageHello) => AsyncIterable<string>,
): Promise<RouteAnswer> {
  const foreign = gate.foreign(request);
  if (foreign !== undefined) return foreign;
  const sections = await sectionsOf(gate, request);
  if ("status" in sections) return sections;
  const shown = deps.hasDebugging() ? sections : sections.filter((one) => one !== "logs" && one !== "exec");
  const { nodeName: node, version } = options;
  const hello: PageHello = { node, version, sections: shown, now: deps.clock.now().wall };
  return { status: 200, type: "application/x-ndjson", headers: PRIVATE, body: lines(hello) };
}

/** Exchanges the token of a login link for a session. */
async function login({ sessions }: PageApi, request: RouteRequest): Promise<RouteAnswer> {
  if (sessions === undefined) return refuse(404, "this port has no login links");
  const token = (await request.readBody(MOST_BODY)).toString("utf8");
  const secrets = sessions.store.redeem(token);
  if (secrets === undefined) {
    return refuse(401, "the login link was used already or has expired: run `kubelet open` again", "link");
  }
  const cookie = `${sessions.cookieName}=${secrets.cookie}; Path=/page/; HttpOnly; SameSite=Strict`;
  return { ...jsonAnswer(200, { key: secrets.key }), headers: { ...PRIVATE, "Set-Cookie": cookie } };
}

function logout({ sessions }: PageApi, { headers }: RouteRequest): RouteAnswer {
  if (sessions === undefined) return refuse(404, "this port has no sessions");
  const cookie = cookieOf(headers, sessions.cookieName);
  if (cookie !== undefined) sessions.store.close(cookie);
  const expired = `${sessions.cookieName}=; Path=/page/; HttpOnly; SameSite=Strict; Max-Age=0`;
  return { ...jsonAnswer(200, {}), headers: { ...PRIVATE, "Set-Cookie": expired } };
}
