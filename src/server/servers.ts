import type { Guard } from "../adapters/net/http-dispatch.ts";
import { type HttpRoute, textAnswer } from "../adapters/net/http-route.ts";
import { type ConnectionLimits, listenHttp } from "../adapters/net/http-server.ts";
import { KeptListener } from "../adapters/net/kept-listener.ts";
import { isLocalName } from "../adapters/net/local-name.ts";
import type { TlsOptions } from "../adapters/net/tls-listener.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Tracer } from "../lib/tracer.ts";
import { isLoopback } from "./agent-guard.ts";
import type { ApiDeps, StatsPages } from "./api-deps.ts";
import { toHttpRoutes } from "./api-route.ts";
import { type HealthCheck, livenessRoutes } from "./health.ts";
import type { RequestMetrics } from "./request-metrics.ts";
import { cadvisorRoutes } from "./routes/cadvisor.ts";
import { API_ROUTES } from "./table.ts";
import { tracedRoutes } from "./traced-routes.ts";

interface ServerDeps {
  /** Called after a crowd of connections has closed. */
  readonly afterCrowd?: () => void;
  readonly log: Logger;
  readonly clock: Clock;
  /** Undefined where requests are not traced. */
  readonly tracer?: Tracer | undefined;
}

interface Port {
  readonly host: string;
  readonly port: number;
}

/** Of ports that authenticate nobody: every user of the machine can connect, and must not fill the memory with headers. */
const OPEN_LIMITS: ConnectionLimits = { connections: 1000, headerBytes: 128 * 1024 };

/** The health port (10248); undefined if its port is 0. */
export function healthServer(
  deps: ServerDeps & { checks: readonly HealthCheck[] },
  { host, port }: Port,
): KeptListener | undefined {
  if (port === 0) return undefined;
  const options = {
    address: { host, port, option: "healthz-port" },
    routes: livenessRoutes(deps.checks),
    limits: OPEN_LIMITS,
  };
  return new KeptListener({ ...deps, listen: () => listenHttp(deps, options) }, { name: "health" });
}

/**
 * The read-only port (10255), without authentication; undefined if its port is 0. On loopback it answers to local names
 * only: specifications of pods are nothing for web sites.
 */
export function readOnlyServer(
  deps: ServerDeps & { api: ApiDeps; requests: RequestMetrics },
  { host, port }: Port,
): KeptListener | undefined {
  if (port === 0) return undefined;
  const options = {
    address: { host, port, option: "read-only-port" },
    routes: tracedRoutes(deps.tracer, toHttpRoutes(API_ROUTES, deps.api, "readOnly"), { isPublic: true }),
    observe: deps.requests.of("readonly"),
    limits: OPEN_LIMITS,
    ...(isLoopback(host) && { guard: localNames }),
    ...(deps.afterCrowd && { afterCrowd: deps.afterCrowd }),
  };
  return new KeptListener({ ...deps, listen: () => listenHttp(deps, options) }, { name: "read-only" });
}

/** The page; it decides itself who may see what of it. */
export interface PageRoutes {
  routes(guard: Guard | undefined): readonly HttpRoute[];
}

interface CadvisorDeps extends ServerDeps {
  readonly stats: StatsPages;
  readonly page?: PageRoutes | undefined;
  readonly guard?: Guard | undefined;
  readonly tls?: (() => Promise<TlsOptions>) | undefined;
}

/** The cAdvisor port (4194); without a guard only for loopback. Undefined if its port is 0. */
export function cadvisorServer(deps: CadvisorDeps, { host, port }: Port): KeptListener | undefined {
  if (port === 0) return undefined;
  const { tls, page } = deps;
  const own = page?.routes(deps.guard) ?? [];
  const guard = exceptPage(deps.guard ?? localNames);
  const listen = async () =>
    listenHttp(deps, {
      address: { host, port, option: "cadvisor-port" },
      routes: [...cadvisorRoutes(deps.stats, { hasPage: own.length > 0 }), ...own],
      guard,
      ...(tls ? { tls: await tls() } : { limits: OPEN_LIMITS }),
    });
  return new KeptListener({ ...deps, listen }, { name: "cadvisor" });
}

/**
 * Refuses requests to loopback under a foreign name: a web site whose name leads to this machine could read the answer
 * in a browser on it. A client without a Host header is none.
 */
const localNames: Guard = async ({ headers }) =>
  isLocalName(headers["host"] ?? "localhost")
    ? undefined
    : textAnswer(403, `Forbidden: this port answers to 127.0.0.1 and localhost, not to ${headers["host"]}\n`);

/** The page authorizes each of its requests by what it shows. */
function exceptPage(guard: Guard): Guard {
  return async (request) => (request.path === "/" || request.path.startsWith("/page/") ? undefined : guard(request));
}

/** The main port (10250): HTTPS, every request passes the guard. */
export function mainServer(
  deps: ServerDeps & { api: ApiDeps; requests: RequestMetrics; guard: Guard; tls: () => Promise<TlsOptions> },
  { host, port }: Port,
): KeptListener {
  const { guard } = deps;
  const listen = async () =>
    listenHttp(deps, {
      address: { host, port, option: "port" },
      routes: tracedRoutes(deps.tracer, toHttpRoutes(API_ROUTES, deps.api, "main"), { isPublic: false }),
      guard,
      tls: await deps.tls(),
      observe: deps.requests.of("readwrite"),
      ...(deps.afterCrowd && { afterCrowd: deps.afterCrowd }),
    });
  return new KeptListener({ ...deps, listen }, { name: "main" });
}
