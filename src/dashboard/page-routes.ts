import type { RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import { jsonAnswer } from "../adapters/net/http-route.ts";
import type { Abortable } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import type { PageHello, PageSection } from "../model/page-lines.ts";
import type { TopologyReport } from "../model/topology-report.ts";
import { execAnswer, logAnswer } from "./container-routes.ts";
import { cookieOf, type Gate, refuse, sectionsOf } from "./gate.ts";
import { LongAnswers } from "./long-answers.ts";
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
  const long = new LongAnswers({ gate, clock: deps.clock });
  const streamed = streams(api, long);
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
    "GET stream": (request) => streamed(request, (hello, abortable) => overviewLines(deps, hello, abortable)),
    "GET pods/:uid": guarded("pods", (request) => {
      const uid = request.params["uid"] ?? "";
      if (deps.view.summary(uid) === undefined) return refuse(404, "there is no such pod");
      return streamed(request, (hello, abortable) => podLines(deps, { uid, hello }, abortable));
    }),
    "GET logs/:uid/:container": guarded(
      "logs",
      debugging((request) => long.begin(request, ["logs"], (own) => logAnswer(deps, own))),
    ),
    "GET exec/:uid/:container": guarded(
      "exec",
      debugging((request) => long.begin(request, ["exec"], (own) => execAnswer(deps, own))),
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
    "GET topology": guarded(
      "machine",
      data(async (request) => {
        const report = deps.topology();
        return (await gate.refusal(request, "pods")) === undefined ? report : withoutHolders(report);
      }),
    ),
    "POST login": (request) => gate.foreign(request) ?? login(api, request),
    "POST logout": (request) => gate.foreign(request) ?? logout(api, request),
  };
}

/** Answers with a stream that begins with what the caller may see. */
function streams({ deps, options, gate }: PageApi, long: LongAnswers) {
  return async (
    request: RouteRequest,
    lines: (hello: PageHello, options: Abortable) => AsyncIterable<string>,
  ): Promise<RouteAnswer> => {
    const foreign = gate.foreign(request);
    if (foreign !== undefined) return foreign;
    const sections = await sectionsOf(gate, request);
    if ("status" in sections) return sections;
    const shown = deps.hasDebugging() ? sections : sections.filter((one) => one !== "logs" && one !== "exec");
    const { nodeName: node, version } = options;
    const hello: PageHello = { node, version, sections: shown, now: deps.clock.now().wall };
    return long.begin(request, sections, (own) => {
      return { status: 200, type: "application/x-ndjson", headers: PRIVATE, body: lines(hello, own) };
    });
  };
}

/** The machine without the names of pods, for a caller who may not see them. Pure. */
function withoutHolders(report: TopologyReport): TopologyReport {
  const devices = report.devices.map(({ holder: _holder, ...device }) => device);
  return { ...report, holdings: [], devices };
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
