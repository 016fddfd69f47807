import { type HttpRoute, type RouteAnswer, type RouteRequest, textAnswer } from "../adapters/net/http-route.ts";
import type { ApiDeps, ApiSwitches } from "./api-deps.ts";

/** A switch in front of endpoints. */
export interface Gate {
  /** For the documentation. */
  readonly name: string;
  /** Why it is closed: the words of a 405, or `unknown` as if nobody had heard of the path. Undefined: open. */
  closed(switches: ApiSwitches): string | undefined;
}

/** One row of the table that the main and the read-only port are made of, and the documentation too. */
export interface ApiRoute {
  /** In find-my-way's syntax. */
  readonly path: string;
  readonly methods: readonly string[] | "any";
  readonly gate: Gate;
  /** One line for the documentation; absent for what only completes another row (redirects, 404 below a prefix). */
  readonly summary?: string;
  /** Query parameters, for the documentation. */
  readonly query?: string;
  handle(deps: ApiDeps, request: RouteRequest): RouteAnswer | Promise<RouteAnswer>;
}

const UNKNOWN = "unknown";
const NO_DEBUGGING = "Debug endpoints are disabled.";

export const ALWAYS: Gate = { name: "", closed: () => undefined };

export const DEBUGGING: Gate = {
  name: "enableDebuggingHandlers",
  closed: ({ debugging }) => (debugging ? undefined : NO_DEBUGGING),
};

/** Not there at all without debugging handlers, and without a feature gate if it has one. */
export function hidden(featureGate?: string): Gate {
  return {
    name: featureGate === undefined ? DEBUGGING.name : `${DEBUGGING.name}, gate ${featureGate}`,
    closed: (switches) => {
      const isOpen = switches.debugging && (featureGate === undefined || switches.isGateOn(featureGate));
      return isOpen ? undefined : UNKNOWN;
    },
  };
}

export const SYSTEM_LOGS: Gate = {
  name: `${DEBUGGING.name}, enableSystemLogHandler`,
  closed: (all) => DEBUGGING.closed(all) ?? (all.systemLogs ? undefined : "logs endpoint is disabled."),
};

export const PROFILING: Gate = {
  name: `${DEBUGGING.name}, enableProfilingHandler`,
  closed: (all) => DEBUGGING.closed(all) ?? (all.profiling ? undefined : "profiling endpoint is disabled."),
};

export const DEBUG_FLAGS: Gate = {
  name: `${DEBUGGING.name}, enableDebugFlagsHandler`,
  closed: (all) => hidden().closed(all) ?? (all.debugFlags ? undefined : "flags endpoint is disabled."),
};

/** A closed port for everything that is not always open. */
const ALL_OFF: ApiSwitches = {
  ...{ debugging: false, systemLogs: false, systemLogQuery: false, profiling: false, debugFlags: false },
  isGateOn: () => false,
};

/** The rows as a listener wants them. On the read-only port every gate is closed, whatever is configured. */
export function toHttpRoutes(rows: readonly ApiRoute[], deps: ApiDeps, port: "main" | "readOnly"): HttpRoute[] {
  const switches = (): ApiSwitches => (port === "main" ? deps.switches.current : ALL_OFF);
  // What is unknown must be so before anybody is asked for credentials; those switches need a restart.
  return rows
    .filter(({ gate }) => gate.closed(switches()) !== UNKNOWN)
    .map(({ path, methods, gate, handle }) => ({
      path,
      // A closed endpoint says so to every method.
      methods: "any",
      handle: (request) => {
        const closed = gate.closed(switches());
        if (closed !== undefined) return textAnswer(405, `${closed}\n`);
        const isKnown = methods === "any" || methods.includes(request.method);
        return isKnown ? handle(deps, request) : textAnswer(405, "405: Method Not Allowed");
      },
    }));
}

/** `/x` answers with the way to `/x/`. */
export function toSlash(path: string, gate: Gate): ApiRoute {
  return {
    ...{ path, methods: "any", gate },
    handle: (_, { query }) => {
      const more = query.toString();
      const location = `${path}/${more === "" ? "" : `?${more}`}`;
      return { status: 301, type: "text/html; charset=utf-8", headers: { Location: location }, body: "" };
    },
  };
}

/** What nobody serves below a known path. */
export function nothingBelow(path: string, gate: Gate): ApiRoute {
  return { path: `${path}/*`, methods: "any", gate, handle: () => textAnswer(404, "404: Page Not Found") };
}
