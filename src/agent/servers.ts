import { collectGarbage } from "../adapters/host/collect-garbage.ts";
import { hostLogFiles } from "../adapters/host/log-files.ts";
import { takeProfile } from "../adapters/host/profiler.ts";
import { HostSystemLogs } from "../adapters/host/system-logs.ts";
import { declareCertificateMetrics, rotationMetrics } from "../adapters/kubeapi/certificate-metrics.ts";
import { CertificateRotation, CertStore, type KubeClients } from "../adapters/kubeapi/index.ts";
import { ApiReviews } from "../adapters/kubeapi/reviews.ts";
import type { KeptListener } from "../adapters/net/kept-listener.ts";
import { type ServingPair, selfSignedPair } from "../adapters/net/self-signed.ts";
import { TlsFiles } from "../adapters/net/tls-files.ts";
import type { TlsOptions } from "../adapters/net/tls-listener.ts";
import { minTlsVersion, openSslCiphers, openSslGroups } from "../adapters/net/tls-names.ts";
import {
  type AgentOptions,
  type agentOptions,
  encodeConfiguration,
  isGateOn,
  type OptionStore,
  optionNames,
  optionOf,
  shownValueOf,
} from "../config/index.ts";
import type { Clock } from "../lib/clock.ts";
import { fixed, LiveValue, select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { reportedVersion } from "../lib/version.ts";
import { type AgentConfiguration, type LocalApiDeps, localApiServer } from "../localapi/index.ts";
import { readLog } from "../logs/index.ts";
import type { NodeAddress } from "../model/generated/types.ts";
import type { ObservedPod } from "../model/observed.ts";
import type { AgentView } from "../pods/index.ts";
import {
  type ApiDeps,
  Authenticator,
  Authorizer,
  accessGuard,
  type HealthCheck,
  healthServer,
  mainServer,
  ping,
  RequestMetrics,
  readOnlyServer,
  type StatsPages,
  type StreamRuntime,
} from "../server/index.ts";

/** Where the host keeps its logs. */
const SYSTEM_LOGS = "/var/log";
/** A runtime that could not be listed for so long is a problem; as in Kubernetes twice the sync frequency, if that is more. */
const STUCK_MS = 300_000;

/** How long after a crowd of connections memory is trimmed: what they held is closed and collected by then. */
const TRIM_AFTER_MS = 5000;

/** The parts of the agent that its servers show. */
export interface ServerParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly nodeName: string;
  readonly view: AgentView;
  readonly observer: { get(uid: string): ObservedPod | undefined; list(): readonly ObservedPod[] };
  readonly runtime: StreamRuntime;
  /** What a pod keeps on the node. */
  readonly storage?: LocalApiDeps["storage"];
  makeDir(path: string, mode: number): Promise<void>;
  /** Gives memory that is free back to the system. */
  trimMemory(): void;
  /** When all of the runtime was listed last; undefined before the first time. */
  listedAt(): { readonly wall: number; readonly mono: number } | undefined;
  /** What the commands about the configuration ask. */
  readonly configuration?: AgentConfiguration | undefined;
  /** Missing for an agent that runs alone. */
  readonly connection?: { readonly clients: KubeClients; readonly addresses: readonly NodeAddress[] } | undefined;
  readonly stats?: StatsPages | undefined;
}

/** The listeners of the agent, by what they are for. */
export interface Servers {
  readonly health?: KeptListener;
  readonly readOnly?: KeptListener;
  readonly main?: KeptListener;
  readonly localApi: KeptListener;
}

/** Builds every listener, and the loops that keep their certificates fresh. */
export function composeServers(parts: ServerParts): { readonly servers: Servers; readonly loops: readonly Loop[] } {
  const { clock, log, store, nodeName } = parts;
  const options = store.current;
  const checks = healthChecks(parts);
  const requests = new RequestMetrics(clock, parts.metrics);
  const api = { ...apiDeps(parts, checks), streamed: requests.streamed.bind(requests) };
  const afterCrowd = (): void =>
    void clock.after(TRIM_AFTER_MS, () => {
      collectGarbage();
      parts.trimMemory();
    });
  const health = healthServer({ clock, log, checks }, { host: options.healthzBindAddress, port: options.healthzPort });
  const readOnly = readOnlyServer(
    { clock, log, api, requests, afterCrowd },
    { host: options.address, port: options.readOnlyPort },
  );
  // Run-once has nobody to serve.
  const secure = options.enableServer && !options.runOnce ? securePort(parts) : undefined;
  const main =
    secure &&
    mainServer(
      { clock, log, api, requests, afterCrowd, guard: guardOf(parts), tls: secure.tls },
      { host: options.address, port: options.port },
    );
  const localApi = localApiServer(
    {
      ...{ view: parts.view, clock, log, config: parts.configuration },
      ...(parts.storage && { storage: parts.storage }),
      logs: { read: (request, abortable) => readLog({ files: hostLogFiles, clock }, request, abortable) },
      streams: { runtime: parts.runtime, observed: (uid) => parts.observer.get(uid) },
    },
    { nodeName, version: reportedVersion(options.version), path: options.localApiSocket },
  );
  return {
    servers: { ...(health && { health }), ...(readOnly && { readOnly }), ...(main && { main }), localApi },
    loops: secure?.loops ?? [],
  };
}

/** What may be wrong with the agent as a whole. */
function healthChecks({ clock, store, listedAt }: ServerParts): HealthCheck[] {
  return [
    ping,
    // Lines are written without waiting for anybody, so there is no flush that could hang.
    { name: "log", problem: () => undefined },
    {
      name: "syncloop",
      problem: () => {
        const listed = listedAt();
        if (listed === undefined) return undefined;
        const age = clock.now().mono - listed.mono;
        if (age <= Math.max(STUCK_MS, 2 * store.current.syncFrequency)) return undefined;
        const since = new Date(listed.wall).toISOString();
        return `the runtime could not be listed since ${since} (${Math.round(age / 1000)} s)`;
      },
    },
    // Device plugins are not served by this version, so nothing of them can fail.
    { name: "device-plugin", problem: () => undefined },
  ];
}

function apiDeps(parts: ServerParts, checks: readonly HealthCheck[]): ApiDeps {
  const { clock, store, view, observer } = parts;
  const startedMs = clock.now().wall;
  const { enableDebuggingHandlers, featureGates } = store.current;
  return {
    checks,
    pods: {
      all: () => view.pods(),
      find: (namespace, name) =>
        view.pods().find(({ metadata }) => metadata.name === name && metadata.namespace === namespace),
      observed: (uid) => observer.get(uid),
      running: () => observer.list().filter(({ sandboxes }) => sandboxes.some(({ state }) => state === "ready")),
      onChange: (fn, options) => view.onChange(fn, options),
    },
    runtime: parts.runtime,
    logs: { read: (wish, options) => readLog({ files: hostLogFiles, clock }, wish, options) },
    systemLogs: new HostSystemLogs(clock, SYSTEM_LOGS),
    metrics: {
      agent: async () => filterPage((await parts.metrics.expose()).body, (name) => !name.startsWith("prober_")),
      probes: async () => filterPage((await parts.metrics.expose()).body, (name) => name.startsWith("prober_")),
    },
    ...(parts.stats && { stats: parts.stats }),
    about: {
      configuration: () => encodeConfiguration(store.current),
      flags: () => flagsOf(store.current),
      ...{ startedMs, version: reportedVersion(store.current.version) },
    },
    debug: {
      setVerbosity: (level) => void store.update({ ...store.current, verbosity: Math.max(0, level) }),
      commandLine: () => process.argv,
      profile: (kind, seconds, options) => takeProfile(clock, { kind, seconds }, options),
    },
    switches: select(
      store.live(
        ...(["enableSystemLogHandler", "enableSystemLogQuery"] as const),
        ...(["enableProfilingHandler", "enableDebugFlagsHandler"] as const),
      ),
      (o) => ({
        debugging: enableDebuggingHandlers,
        systemLogs: o.enableSystemLogHandler,
        systemLogQuery: o.enableSystemLogQuery,
        profiling: o.enableProfilingHandler,
        debugFlags: o.enableDebugFlagsHandler,
        isGateOn: (gate) => isGateOn(gate, featureGates),
      }),
    ),
    makeDir: (path, mode) => parts.makeDir(path, mode),
    rootDir: store.current.rootDir,
    now: () => clock.now().wall,
  };
}

/** Those metrics of a text page whose name is wanted, with their comments. */
function filterPage(page: string, isWanted: (name: string) => boolean): string {
  const lines = page.split("\n").filter((line) => {
    const name = /^(?:# (?:HELP|TYPE) )?([A-Za-z_:][\w:]*)/.exec(line)?.[1];
    return name === undefined ? line !== "" : isWanted(name);
  });
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}

function flagsOf(values: AgentOptions): Record<string, string> {
  const named = optionNames.flatMap((name) => {
    const { flag } = optionOf(name);
    return flag === undefined || flag === "help" ? [] : [[flag, shownValueOf(name, values)] as const];
  });
  return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function guardOf({ clock, log, store, connection, nodeName }: ServerParts): ReturnType<typeof accessGuard> {
  const options = store.current;
  const reviews = connection && new ApiReviews({ api: connection.clients.calls, clock }, nodeName);
  const asksTokens = options.webhookAuthentication && reviews !== undefined;
  if (!asksTokens && !options.anonymousAuth && options.clientCAFile === "") {
    log.info("nobody can use the main port: no client CA, no API server to ask, and anonymous requests are off");
  }
  return accessGuard({
    log,
    authenticator: new Authenticator(
      { clock, log, reviewer: asksTokens ? reviews : undefined },
      select(store.live("webhookAuthenticationCacheTTL"), (o) => ({
        anonymous: options.anonymousAuth,
        tokenTtlMs: o.webhookAuthenticationCacheTTL,
      })),
    ),
    authorizer: new Authorizer(
      { clock, reviewer: reviews },
      select(store.live("authorizedTTL", "unauthorizedTTL"), (o) => ({
        mode: options.authorizationMode,
        allowedTtlMs: o.authorizedTTL,
        deniedTtlMs: o.unauthorizedTTL,
      })),
    ),
  });
}

/** The certificate of the main port: signed by the cluster, from files, or self-made. */
function securePort(parts: ServerParts): { tls: () => Promise<TlsOptions>; loops: readonly Loop[] } {
  const { clock, log, store, nodeName, connection } = parts;
  const { certDir, tlsCipherSuites, tlsCurvePreferences, tlsMinVersion, serverTLSBootstrap } = store.current;
  const isSigned = serverTLSBootstrap && connection !== undefined;
  const pair = new LiveValue<ServingPair | undefined>(undefined);
  const names = select(store.live("tlsCertFile", "tlsPrivateKeyFile", "clientCAFile"), (o) => ({
    ...(isSigned ? { certificate: "", key: "" } : { certificate: o.tlsCertFile, key: o.tlsPrivateKeyFile }),
    clientAuthorities: o.clientCAFile,
  }));
  const files = new TlsFiles({ clock, log, pair }, names);
  const { ciphers, gone } = openSslCiphers(tlsCipherSuites);
  if (gone.length > 0) log.warn("cipher suites that this agent does not have", { suites: gone.join(" ") });
  const certificates = new CertStore(clock, { directory: certDir, prefix: "kubelet-server" });
  const lived = isSigned ? rotationMetrics(parts.metrics, clock) : undefined;
  const tls = async (): Promise<TlsOptions> => {
    if (isSigned) {
      const stored = await certificates.load();
      if (stored !== undefined) lived?.(stored);
      pair.set(stored);
    }
    if (!isSigned && names.current.certificate === "")
      pair.set(await selfSignedPair(certDir, nodeName, clock.now().wall));
    await files.load();
    const { material } = files;
    return { material, minVersion: minTlsVersion(tlsMinVersion), ciphers, groups: openSslGroups(tlsCurvePreferences) };
  };
  const loops: Loop[] = [{ name: "certificate files", run: (signal) => files.run({ signal }) }];
  if (isSigned) {
    const rotation = servingRotation(parts, certificates, (next) => {
      lived?.(next);
      pair.set(next);
    });
    declareCertificateMetrics(parts.metrics, clock, { kind: "server", facts: () => rotation.facts });
    loops.push({ name: "serving certificate", run: (signal) => rotation.run({ signal }) });
  }
  return { tls, loops };
}

function servingRotation(
  { clock, log, nodeName, connection }: ServerParts,
  store: CertStore,
  onRotated: (pair: ServingPair & { readonly notBefore: number }) => void,
): CertificateRotation {
  const addresses = connection?.addresses ?? [];
  const of = (isIp: boolean): string[] =>
    [...new Set(addresses.filter(({ type }) => type.endsWith("IP") === isIp).map(({ address }) => address))].sort();
  const wish = {
    signer: "kubernetes.io/kubelet-serving" as const,
    subject: { commonName: `system:node:${nodeName}`, organizations: ["system:nodes"] },
    dnsNames: of(false),
    addresses: of(true),
  };
  const api = (): KubeClients["calls"] => {
    if (connection === undefined) throw new Error("there is no API server");
    return connection.clients.calls;
  };
  return new CertificateRotation(
    { api, store, clock, log },
    { wish: fixed(wish.addresses.length === 0 ? undefined : wish), onRotated },
  );
}
