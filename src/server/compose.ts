import { collectGarbage } from "../adapters/host/collect-garbage.ts";
import type { KubeClients } from "../adapters/kubeapi/index.ts";
import { dispatcher } from "../adapters/net/http-dispatch.ts";
import type { RouteAnswer, RouteRequest } from "../adapters/net/http-route.ts";
import type { KeptListener } from "../adapters/net/kept-listener.ts";
import { type agentOptions, declareGateMetrics, type OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { EventLoopLag } from "../lib/event-loop-lag.ts";
import type { Live } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Tracer } from "../lib/tracer.ts";
import type { NodeAddress, Pod } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import { agentApi } from "./agent-api.ts";
import { type AgentCheckDeps, agentChecks, stalledReason } from "./agent-checks.ts";
import { agentGuard, isLoopback } from "./agent-guard.ts";
import type { ApiDeps, LogReader, ServerRuntime, StatsPages, StreamOpener } from "./api-deps.ts";
import { toHttpRoutes } from "./api-route.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { cadvisorServer, healthServer, mainServer, type PageRoutes, readOnlyServer } from "./servers.ts";
import { servingTls } from "./serving-certificate.ts";
import { API_ROUTES } from "./table.ts";

/** Memory is trimmed this long after a crowd of connections: what they held is closed and collected by then. */
const TRIM_AFTER_MS = 5000;

/** What the ports of the agent are built from. */
export interface ServerDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly nodeName: string;
  /** Undefined where requests are not traced. */
  readonly tracer?: Tracer | undefined;
  /** The desired pods with their status. */
  readonly view: { pods(): readonly Pod[]; onChange(fn: () => void, options: Abortable): void };
  readonly observer: { get(uid: string): ObservedPod | undefined; list(): readonly ObservedPod[] };
  readonly runtime: ServerRuntime;
  readonly streams: StreamOpener;
  readonly logs: LogReader;
  makeDir(path: string, mode: number): Promise<void>;
  /** Returns free memory to the system. */
  trimMemory(): void;
  /** Time of the last relist; undefined before the first. */
  listedAt(): { readonly wall: number; readonly mono: number } | undefined;
  /** Calls to the runtime that have not ended. */
  readonly calls: AgentCheckDeps["calls"];
  readonly registrationTrouble?: AgentCheckDeps["registrationTrouble"];
  /** Undefined without an API server. */
  readonly connection?: { readonly clients: KubeClients; readonly addresses: Live<readonly NodeAddress[]> } | undefined;
  readonly stats?: StatsPages | undefined;
  /** The page of the cAdvisor port. */
  readonly page?: PageRoutes | undefined;
}

/** The TCP ports of the agent; those that are turned off are missing. */
export interface AgentPorts {
  readonly health?: KeptListener;
  readonly readOnly?: KeptListener;
  readonly main?: KeptListener;
  readonly cadvisor?: KeptListener;
}

/** Builds the ports as configured, and the loops that keep their certificates current. */
export function composePorts(deps: ServerDeps): {
  readonly ports: AgentPorts;
  readonly loops: readonly Loop[];
  /** Why the agent makes no progress; undefined if it does. */
  stalled(): string | undefined;
  /** Answers a request to an endpoint of the main port, for callers inside the process: nobody is authenticated. */
  ask(request: RouteRequest, target: string): Promise<RouteAnswer>;
} {
  const { clock, log, store, metrics, tracer } = deps;
  const options = store.current;
  const { listedAt, calls } = deps;
  const lag = new EventLoopLag(clock);
  const checked = { clock, listedAt, calls, lag, syncFrequency: () => store.current.syncFrequency };
  const { registrationTrouble } = deps;
  const checks = agentChecks({ ...checked, ...(registrationTrouble && { registrationTrouble }) });
  const requests = new RequestMetrics(clock, metrics);
  declareGateMetrics(metrics, () => store.current.featureGates);
  const api = { ...agentApi(deps, checks), streamed: requests.streamed.bind(requests) };
  const afterCrowd = (): void =>
    void clock.after(TRIM_AFTER_MS, () => {
      collectGarbage();
      deps.trimMemory();
    });
  const health = healthServer({ clock, log, checks }, { host: options.healthzBindAddress, port: options.healthzPort });
  const readOnly = readOnlyServer(
    { clock, log, tracer, api, requests, afterCrowd },
    { host: options.address, port: options.readOnlyPort },
  );
  // Run-once serves no clients.
  const secure = options.enableServer && !options.runOnce ? servingTls(deps) : undefined;
  const access = secure && { guard: agentGuard(deps), tls: secure.tls };
  const main =
    access &&
    mainServer(
      { clock, log, tracer, api, requests, afterCrowd, ...access },
      { host: options.address, port: options.port },
    );
  const cadvisor = cadvisorPort(deps, access);
  return {
    ports: {
      ...(health && { health }),
      ...(readOnly && { readOnly }),
      ...(main && { main }),
      ...(cadvisor && { cadvisor }),
    },
    loops: [...(secure?.loops ?? []), { name: "event loop lag", run: (signal) => lag.run({ signal }) }],
    stalled: () => stalledReason(checked),
    ask: innerPort(api),
  };
}

/** The endpoints of the main port without the port. */
function innerPort(api: ApiDeps): (request: RouteRequest, target: string) => Promise<RouteAnswer> {
  const dispatch = dispatcher(toHttpRoutes(API_ROUTES, api, "main"));
  return (request, target) => dispatch({ ...request, target });
}

/** The cAdvisor port: open on loopback, else with the access of the main port, and not at all without that. */
function cadvisorPort(
  { clock, log, store, stats, page }: ServerDeps,
  access: Pick<Parameters<typeof mainServer>[0], "guard" | "tls"> | undefined,
): KeptListener | undefined {
  const { address: host, cadvisorPort: port, runOnce } = store.current;
  if (stats === undefined || runOnce || port === 0) return undefined;
  if (isLoopback(host)) return cadvisorServer({ clock, log, stats, page }, { host, port });
  if (access !== undefined) return cadvisorServer({ clock, log, stats, page, ...access }, { host, port });
  log.warn("The cAdvisor port is not opened: the server that authenticates its clients is turned off", { port });
  return undefined;
}
