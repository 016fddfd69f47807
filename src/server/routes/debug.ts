import { type RouteAnswer, type RouteRequest, textAnswer } from "../../adapters/net/http-route.ts";
import type { ApiDeps } from "../api-deps.ts";
import { type ApiRoute, DEBUG_FLAGS, PROFILING, toSlash } from "../api-route.ts";

const DEFAULT_SECONDS = 30;
const LONGEST_SECONDS = 300;
const INDEX = `/debug/pprof/

profile  CPU profile of the next ?seconds=30 (V8's .cpuprofile)
heap     what allocates during the next ?seconds=30 (V8's .heapprofile)
cmdline  the command line
`;

/** Debugging of the process. Profiles are in V8's format, not pprof's: open them in a browser's developer tools. */
export const debugRoutes: readonly ApiRoute[] = [
  {
    path: "/debug/pprof/",
    methods: ["GET"],
    gate: PROFILING,
    summary: "Lists the profiles.",
    handle: () => textAnswer(200, INDEX),
  },
  {
    path: "/debug/pprof/:name",
    methods: ["GET"],
    gate: PROFILING,
    query: "seconds",
    summary: "A profile of the agent, in V8's format.",
    handle: profile,
  },
  toSlash("/debug/pprof", PROFILING),
  {
    path: "/debug/flags/v",
    methods: "any",
    gate: DEBUG_FLAGS,
    summary: "Sets the log verbosity of the agent (PUT with the level as body).",
    handle: setVerbosity,
  },
];

async function profile({ debug }: ApiDeps, { params, query, signal }: RouteRequest): Promise<RouteAnswer> {
  const { name = "" } = params;
  if (name === "cmdline") return textAnswer(200, debug.commandLine().join("\0"));
  if (name !== "profile" && name !== "heap") return textAnswer(404, `unknown profile "${name}"\n${INDEX}`);
  const seconds = query.get("seconds") ?? String(DEFAULT_SECONDS);
  if (!/^\d{1,3}$/.test(seconds) || Number(seconds) < 1 || Number(seconds) > LONGEST_SECONDS) {
    return textAnswer(400, `seconds must be a number from 1 to ${LONGEST_SECONDS}\n`);
  }
  const body = await debug.profile(name === "heap" ? "heap" : "cpu", Number(seconds), { signal });
  return { status: 200, type: "application/json", body };
}

async function setVerbosity({ debug }: ApiDeps, request: RouteRequest): Promise<RouteAnswer> {
  if (request.method !== "PUT") return textAnswer(406, "unrecognized http method\n");
  const text = (await request.readBody(64)).toString("utf8").trim();
  if (!/^-?\d{1,9}$/.test(text)) return textAnswer(400, `failed set klog.logging.verbosity ${text}: invalid value\n`);
  debug.setVerbosity(Number(text));
  return textAnswer(200, `successfully set klog.logging.verbosity to ${text}\n`);
}
