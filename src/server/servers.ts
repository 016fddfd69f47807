import type { Guard } from "../adapters/net/http-dispatch.ts";
import { listenHttp } from "../adapters/net/http-server.ts";
import { KeptListener } from "../adapters/net/kept-listener.ts";
import type { TlsOptions } from "../adapters/net/tls-listener.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { ApiDeps, StatsPages } from "./api-deps.ts";
import { toHttpRoutes } from "./api-route.ts";
import { type HealthCheck, livenessRoutes } from "./health.ts";
import type { RequestMetrics } from "./request-metrics.ts";
import { cadvisorRoutes } from "./routes/cadvisor.ts";
import { API_ROUTES } from "./table.ts";

interface ServerDeps {
  /** Called after a crowd of connections has closed. */
  readonly afterCrowd?: () => void;
  readonly log: Logger;
  readonly clock: Clock;
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
    routes: toHttpRoutes(API_ROUTES, deps.api, "readOnly"),
    observe: deps.requests.of("readonly"),
    ...(deps.afterCrowd && { afterCrowd: deps.afterCrowd }),
  };
  return new KeptListener({ ...deps, listen: () => listenHttp(deps, options) }, { name: "read-only" });
}

/** The cAdvisor port (4194); without a guard only for loopback. Undefined if its port is 0. */
export function cadvisorServer(
  deps: ServerDeps & { stats: StatsPages; guard?: Guard | undefined; tls?: (() => Promise<TlsOptions>) | undefined },
  { host, port }: Port,
): KeptListener | undefined {
  if (port === 0) return undefined;
  const { guard, tls } = deps;
  const listen = async () =>
    listenHttp(deps, {
      address: { host, port, option: "cadvisor-port" },
      routes: cadvisorRoutes(deps.stats),
      ...(guard && { guard }),
      ...(tls && { tls: await tls() }),
    });
  return new KeptListener({ ...deps, listen }, { name: "cadvisor" });
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
      routes: toHttpRoutes(API_ROUTES, deps.api, "main"),
      guard,
      tls: await deps.tls(),
      observe: deps.requests.of("readwrite"),
      ...(deps.afterCrowd && { afterCrowd: deps.afterCrowd }),
    });
  return new KeptListener({ ...deps, listen }, { name: "main" });
}
