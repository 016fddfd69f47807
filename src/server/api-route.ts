import { type HttpRoute, type RouteAnswer, type RouteRequest, textAnswer } from "../adapters/net/http-route.ts";
import type { ApiDeps, ApiSwitches } from "./api-deps.ts";

/** A condition under which endpoints are served. */
export interface Gate {
  /** For the documentation. */
  readonly name: string;
  /** Why it is closed: the body of a 405, or `unknown` for a 404. Undefined: open. */
  closed(switches: ApiSwitches): string | undefined;
}

/** One row of the route table of the main and the read-only port, and of the documentation. */
export interface ApiRoute {
  /** In find-my-way's syntax. */
  readonly path: string;
  readonly methods: readonly string[] | "any";
  readonly gate: Gate;
  /** One line for the documentation; missing for rows that only complete another one (redirects, 404 below a prefix). */
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

/** 404 without debugging handlers, and without the feature gate if there is one. */
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

/** The settings under which only rows without a gate are served. */
const ALL_OFF: ApiSwitches = {
  debugging: false,
  systemLogs: false,
  systemLogQuery: false,
  profiling: false,
  debugFlags: false,
  isGateOn: () => false,
};

/** The rows as routes of a listener. On the read-only port every gate is closed, whatever is configured. */
export function toHttpRoutes(rows: readonly ApiRoute[], deps: ApiDeps, port: "main" | "readOnly"): HttpRoute[] {
  const switches = (): ApiSwitches => (port === "main" ? deps.switches.current : ALL_OFF);
  // An unknown path is a 404 before authentication; these settings need a restart.
  return rows
    .filter(({ gate }) => gate.closed(switches()) !== UNKNOWN)
    .map(({ path, methods, gate, handle }) => ({
      path,
      // A closed endpoint answers 405 to every method.
      methods: "any",
      handle: (request) => {
        const closed = gate.closed(switches());
        if (closed !== undefined) return textAnswer(405, `${closed}\n`);
        const isKnown = methods === "any" || methods.includes(request.method);
        return isKnown ? handle(deps, request) : textAnswer(405, "405: Method Not Allowed");
      },
    }));
}

/** Redirects `/x` to `/x/`. */
export function toSlash(path: string, gate: Gate): ApiRoute {
  return {
    path,
    methods: "any",
    gate,
    handle: (_, { query }) => {
      const more = query.toString();
      const location = `${path}/${more === "" ? "" : `?${more}`}`;
      return { status: 301, type: "text/html; charset=utf-8", headers: { Location: location }, body: "" };
    },
  };
}

/** Answers 404 below a known path. */
export function nothingBelow(path: string, gate: Gate): ApiRoute {
  return { path: `${path}/*`, methods: "any", gate, handle: () => textAnswer(404, "404: Page Not Found") };
}
