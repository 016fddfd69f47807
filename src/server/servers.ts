import { listenHttp } from "../adapters/net/http-server.ts";
import { KeptListener } from "../adapters/net/kept-listener.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import { healthRoutes, ping } from "./health.ts";
import { type ReadOnlyDeps, readOnlyRoutes } from "./read-only.ts";

interface ServerDeps {
  readonly log: Logger;
  readonly clock: Clock;
}

interface Port {
  readonly host: string;
  readonly port: number;
}

/** The liveness port (10248), or undefined when its port is 0. */
export function healthServer(deps: ServerDeps, { host, port }: Port): KeptListener | undefined {
  if (port === 0) return undefined;
  const options = { address: { host, port, option: "healthz-port" }, routes: healthRoutes([ping]) };
  return new KeptListener({ ...deps, listen: () => listenHttp(deps, options) }, { name: "health" });
}

/** The read-only port (10255), or undefined when its port is 0. */
export function readOnlyServer(deps: ServerDeps & ReadOnlyDeps, { host, port }: Port): KeptListener | undefined {
  if (port === 0) return undefined;
  const options = { address: { host, port, option: "read-only-port" }, routes: readOnlyRoutes(deps) };
  return new KeptListener({ ...deps, listen: () => listenHttp(deps, options) }, { name: "read-only" });
}
