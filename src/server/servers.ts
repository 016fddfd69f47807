import type { Guard } from "../adapters/net/http-dispatch.ts";
import type { HttpRoute } from "../adapters/net/http-route.ts";
import { listenHttp } from "../adapters/net/http-server.ts";
import { KeptListener } from "../adapters/net/kept-listener.ts";
import type { TlsOptions } from "../adapters/net/tls-listener.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Tracer } from "../lib/tracer.ts";
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

/** The health port (10248); undefined if its port is 0. */
export function healthServer(
  deps: ServerDeps & { checks: readonly HealthCheck[] },
  { host, port }: Port,
): KeptListener | undefined {
  if (port === 0) return undefined;
  const options = { address: { host, port, option: "healthz-port" }, routes: livenessRoutes(deps.checks) };
  return new KeptListener({ ...deps, listen: () => listenHttp(deps, options) }, { name: "health" });
}

/** The read-only port (10255), without authentication; undefined if its port is 0. */
export function readOnlyServer(
  deps: ServerDeps & { api: ApiDeps; requests: RequestMetrics },
  { host, port }: Port,
): KeptListener | undefined {
  if (port === 0) return undefined;
  const options = {
    address: { host, port, option: "read-only-port" },
    routes: tracedRoutes(deps.tracer, toHttpRoutes(API_ROUTES, deps.api, "readOnly"), { isPublic: true }),
    observe: deps.requests.of("readonly"),
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
  const guard = deps.guard && exceptPage(deps.guard);
  const listen = async () =>
    listenHttp(deps, {
      address: { host, port, option: "cadvisor-port" },
      routes: [...cadvisorRoutes(deps.stats, { hasPage: own.length > 0 }), ...own],
      ...(guard && { guard }),
      ...(tls && { tls: await tls() }),
    });
  return new KeptListener({ ...deps, listen }, { name: "cadvisor" });
}

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
