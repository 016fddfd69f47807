import { takeProfile } from "../adapters/host/profiler.ts";
import { HostSystemLogs } from "../adapters/host/system-logs.ts";
import {
  type AgentOptions,
  encodeConfiguration,
  isGateOn,
  optionNames,
  optionOf,
  shownValueOf,
} from "../config/index.ts";
import { select } from "../lib/live.ts";
import { reportedVersion } from "../lib/version.ts";
import { withStability } from "../model/metric-stability.ts";
import type { ApiDeps } from "./api-deps.ts";
import type { ServerDeps } from "./compose.ts";
import type { HealthCheck } from "./health.ts";
import { SliMetrics, START_TIME } from "./sli-metrics.ts";

/** The directory that `/logs` serves. */
const SYSTEM_LOGS = "/var/log";

/** The start of the process has a level on the pages that Kubernetes puts it on itself. */
function describeProbe(name: string, help: string): string {
  return name === START_TIME ? `[ALPHA] ${help}` : withStability(name, help);
}

/** What the endpoints of the main and the read-only port serve. */
export function agentApi(deps: ServerDeps, checks: readonly HealthCheck[]): ApiDeps {
  const { clock, store, view, observer, metrics } = deps;
  const { enableDebuggingHandlers, featureGates } = store.current;
  const isProbeMetric = (name: string): boolean => name.startsWith("prober_");
  const slis = new SliMetrics(checks);
  return {
    checks: slis.counted(),
    slis,
    pods: {
      all: () => view.pods(),
      find: (namespace, name) =>
        view.pods().find(({ metadata }) => metadata.name === name && metadata.namespace === namespace),
      observed: (uid) => observer.get(uid),
      running: () => observer.list().filter(({ sandboxes }) => sandboxes.some(({ state }) => state === "ready")),
      onChange: (fn, options) => view.onChange(fn, options),
    },
    runtime: deps.runtime,
    streams: deps.streams,
    logs: deps.logs,
    systemLogs: new HostSystemLogs(clock, SYSTEM_LOGS),
    metrics: {
      agent: async () => (await metrics.expose((name) => !isProbeMetric(name), withStability)).body,
      probes: async () =>
        (await metrics.expose((name) => isProbeMetric(name) || name === START_TIME, describeProbe)).body,
    },
    ...(deps.stats && { stats: deps.stats }),
    about: {
      // Whoever may read the configuration must not get the credentials in it.
      configuration: () => encodeConfiguration(store.current, { masks: true }),
      flags: () => flagsOf(store.current),
      startedMs: clock.now().wall,
      version: reportedVersion(store.current.version),
    },
    debug: {
      setVerbosity: (level) => void store.update({ ...store.current, verbosity: Math.max(0, level) }),
      commandLine: () => process.argv,
      profile: (kind, seconds, options) => takeProfile(clock, { kind, seconds }, options),
    },
    switches: select(
      store.live("enableSystemLogHandler", "enableSystemLogQuery", "enableProfilingHandler", "enableDebugFlagsHandler"),
      (o) => ({
        debugging: enableDebuggingHandlers,
        systemLogs: o.enableSystemLogHandler,
        systemLogQuery: o.enableSystemLogQuery,
        profiling: o.enableProfilingHandler,
        debugFlags: o.enableDebugFlagsHandler,
        isGateOn: (gate) => isGateOn(gate, featureGates),
      }),
    ),
    makeDir: (path, mode) => deps.makeDir(path, mode),
    rootDir: store.current.rootDir,
    now: () => clock.now().wall,
  };
}

function flagsOf(values: AgentOptions): Record<string, string> {
  const named = optionNames.flatMap((name) => {
    const { flag } = optionOf(name);
    return flag === undefined || flag === "help" ? [] : [[flag, shownValueOf(name, values)] as const];
  });
  return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
}
