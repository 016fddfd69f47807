import { readKernelLimits } from "../adapters/cgroup/facts.ts";
import { connectConfigured } from "../adapters/connect-runtime.ts";
import { shimReport } from "../adapters/embedded/shim-report.ts";
import { checkpointFiles } from "../adapters/host/checkpoint-files.ts";
import { openQuotas } from "../adapters/host/open-quotas.ts";
import { PodHost } from "../adapters/host/pod-host.ts";
import { rotationFiles } from "../adapters/host/rotation-files.ts";
import { trimAfterBursts } from "../adapters/host/trim-after-bursts.ts";
import { LinuxVolumeHost, type VolumeHostDeps } from "../adapters/host/volume-host.ts";
import { connectionMetrics } from "../adapters/kubeapi/connection-metrics.ts";
import type { KeptListener } from "../adapters/net/kept-listener.ts";
import { probeNet } from "../adapters/net/probe-net.ts";
import { composeTracing } from "../adapters/otlp/compose.ts";
import type { RuntimePort } from "../adapters/runtime/port.ts";
import type { ApiNode } from "../apiserver/index.ts";
import { type AgentOptions, agentOptions, type DynamicConfiguration, isGateOn, OptionStore } from "../config/index.ts";
import { composePage } from "../dashboard/index.ts";
import { composeDevices } from "../devices/index.ts";
import { composeEviction, type PressureCondition } from "../eviction/index.ts";
import { composeGc } from "../gc/index.ts";
import { type Abortable, manyListeners } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { LiveValue } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import { type Loop, runLoops } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { declareProcessMetrics } from "../lib/process-metrics.ts";
import { reportedVersion } from "../lib/version.ts";
import { type AgentConfiguration, localApiServer } from "../localapi/index.ts";
import { logReader, rotateLogs } from "../logs/index.ts";
import type { Pod } from "../model/generated/types.ts";
import type { MachineFacts } from "../model/machine-facts.ts";
import type { ObjectSource } from "../model/object-source.ts";
import { composeGuards, NodeRules, OomCounts, standalonePodCidr } from "../node/index.ts";
import { composePlugins } from "../plugins/index.ts";
import {
  AgentView,
  affinityProblem,
  composeObserver,
  DesiredPods,
  declarePodMetrics,
  type ExecuteDeps,
  Journal,
  type Observer,
  PodRing,
  PodStreams,
  podLists,
  poolCounters,
  poolOptions,
  type UserPool,
  WorkerPool,
  workerMetrics,
} from "../pods/index.ts";
import { composeProbes, type ProbeScheduler, probeHooks, recordFiles } from "../probes/index.ts";
import { type CgroupDriver, checkDriver, classCgroups, type ResourceHost, refreshCgroups } from "../resources/index.ts";
import { type AgentPorts, composePorts } from "../server/index.ts";
import { LayeredObjects, LOCAL_SOURCES, localSources, ObjectStore, type SourceObject } from "../sources/index.ts";
import { composeStats } from "../stats/index.ts";
import { composeTopology, type Topology } from "../topology/index.ts";
import { composeStorage, composeVolumes, storageOf } from "../volumes/index.ts";
import { Cluster, type ClusterConnection } from "./cluster.ts";
import { composeExecute } from "./execute.ts";

/** Milliseconds that creates and starts may take to finish once the agent stops. */
const FINISH_MS = 5000;
/** The gate for measuring emptyDirs of pods with a user namespace by quotas. */
const QUOTA_GATE = "LocalStorageCapacityIsolationFSQuotaMonitoring";

/** What the agent needs of the host; `LinuxHost` provides it. */
export interface KubeletHost extends VolumeHostDeps, ResourceHost {
  trimMemory(): void;
}

export interface KubeletDeps {
  readonly host: KubeletHost;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Settings of one run, resolved before it begins. */
export interface KubeletSettings {
  readonly options: AgentOptions;
  readonly machine: MachineFacts;
  readonly cgroupDriver: CgroupDriver;
  /** `containerd`, `cri-o` …: the scheme of container ids. */
  readonly runtimeName: string;
  /** The flat directory of log links, /var/log/containers by default. */
  readonly containerLogsDir: string;
  /** Ids for user namespaces, if the administrator set some aside. */
  readonly userPool?: UserPool | undefined;
  /** On a shared runtime: stop only those orphaned pods that carry this mark. */
  readonly owner?: string;
  /** The options if they may change while the agent runs; it holds `options` at the start. */
  readonly store?: OptionStore<typeof agentOptions>;
  /** Serves the commands about the configuration. */
  readonly configuration?: AgentConfiguration;
  /** Undefined without `--dynamic-config-dir`. */
  readonly dynamic?: DynamicConfiguration | undefined;
  /** Undefined without an API server. */
  readonly connection?: ClusterConnection;
  /** The local API that the connection leads to; undefined without one. */
  readonly local?: LocalParts;
}

/** What belongs to the local API: its listeners, and its loops and controllers. */
export interface LocalParts {
  readonly listeners: { readonly apiSocket: KeptListener; readonly api?: KeptListener };
  loops(signal: AbortSignal): readonly Loop[];
  /** Connects the agent, whose pods are looked into through the API. */
  attach(node: ApiNode): void;
}

/** The listeners of the agent. */
export interface Servers extends AgentPorts {
  readonly localApi: KeptListener;
  readonly api?: KeptListener;
  readonly apiSocket?: KeptListener;
  readonly devicePlugins: KeptListener;
  readonly podResources: KeptListener;
}

/** Objects that pods refer to: of the cluster, of manifests, or of both beside each other. */
function objectsOf(cluster: Cluster | undefined, manifests: ObjectStore, hasApiServer: boolean): ObjectSource {
  if (cluster === undefined) return manifests;
  return hasApiServer ? cluster.objects : new LayeredObjects([manifests, cluster.objects]);
}

/** The agent, built from its parts: sources → desired → workers → runtime → observed, and the servers around them. */
export class Kubelet {
  readonly view: AgentView;
  readonly servers: Servers;
  /** Why the agent makes no progress; undefined if it does. */
  readonly stalled: () => string | undefined;
  readonly desired: DesiredPods;
  private readonly journal: Journal;
  private readonly runtime: RuntimePort;
  private readonly store: OptionStore<typeof agentOptions>;
  private readonly cluster: Cluster | undefined;
  private readonly rules: NodeRules;
  private readonly ring: PodRing<readonly SourceObject[]>;
  private readonly pool: WorkerPool;
  private readonly loops: readonly Loop[];
  private readonly stop = manyListeners();
  private readonly late = manyListeners();

  constructor(
    private readonly deps: KubeletDeps,
    private readonly settings: KubeletSettings,
  ) {
    const { clock, log } = deps;
    const { signal } = this.stop;
    const { nodeName } = settings.machine;
    const { rootDir, podLogsDir } = settings.options;
    const store = settings.store ?? new OptionStore(agentOptions, settings.options);
    this.store = store;
    const { tracer, loops: tracing } = composeTracing(deps, store, nodeName);
    this.journal = new Journal({ clock, tracer });

    // Sources and what is desired.
    this.cluster =
      settings.connection &&
      new Cluster({ ...deps, ...settings, connection: settings.connection, store, nodeName, signal });
    const { cluster, journal } = this;
    const hasApi = cluster !== undefined;
    // A cluster has its own ways for what the local API leaves to manifests and to the host.
    const hasApiServer = hasApi && settings.connection?.isLocal !== true;
    this.desired = new DesiredPods({ clock }, { sources: hasApi ? [...LOCAL_SOURCES, "api"] : LOCAL_SOURCES });
    const { desired } = this;
    const manifestObjects = new ObjectStore();
    const objects = objectsOf(cluster, manifestObjects, hasApiServer);
    const pressure = new LiveValue<readonly PressureCondition[]>([]);
    const apiNode = () => cluster?.currentNode();
    const devices = composeDevices({ ...deps, store, journal }, signal);
    const options = () => store.current;
    const admitted = { pressure: () => pressure.current, devices: () => devices.plugins.admissible() };
    this.rules = new NodeRules({ nodeName, options, apiNode, ...admitted });

    // The runtime, what is observed of it, and what acts on it.
    const { runtime, images, calls } = connectConfigured({ ...deps, tracer }, store);
    this.runtime = runtime;
    const observer = composeObserver(
      { ...deps, runtime, store, files: new PodHost(deps.host) },
      {
        wake: (uid) => this.pool.wake(uid),
        listed: (pods) => {
          void this.rules.refresh(runtime, { signal });
          this.ring.listed(pods);
        },
      },
    );
    const volumeHost = new LinuxVolumeHost(deps.host, clock, {
      quotas: openQuotas(deps, () => isGateOn(QUOTA_GATE, store.current.featureGates)),
    });
    const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
      journal.event({ type, reason, message, subject: nodeName });
    const parts = { deps, settings, store, rules: this.rules, cluster, objects, signal, event };
    const ofCluster = cluster?.volumeSources(journal);
    const sources = { objects, ...ofCluster };
    const { plugins, loop: pluginLoop } = composePlugins(deps, { rootDir });
    const evict = (uid: string, failure: { reason: string; message: string }) => this.pool.worker(uid)?.evict(failure);
    const around = { rules: this.rules, journal, plugins, nodeName, signal, store, evict };
    const ofVolumes = composeVolumes({ ...deps, ...sources, ...around, host: volumeHost }, { rootDir });
    const { volumes, spaces } = ofVolumes;
    const shared = { ...deps, store, desired, observer, event, tracer };
    const apiPod = (namespace: string, name: string) => cluster?.pod(namespace, name);
    const gc = composeGc({ ...shared, images, runtime, apiPod, pool: () => this.pool }, settings, signal);
    const late = { pool: () => this.pool, listedAt: () => this.ring.listedAt };
    const claims = cluster?.claims({ ...shared, ...late, plugins });
    const of = claims ? [claims.provider] : [];
    const resources = () => this.rules.resources();
    const aligned = { providers: [devices.provider], devices: devices.report };
    const topology = composeTopology({ ...shared, ...aligned, ...late, runtime, resources, files: checkpointFiles });
    const execute = composeExecute(parts, {
      runtime: observer.recording(runtime),
      images: gc.images,
      volumes,
      claims: claims?.provider,
      topology,
      contributors: [devices.contributor, ...topology.contributors, ...of],
      resourceHealth: [devices.health, ...of],
    });
    plugins.handle("DevicePlugin", devices.handler);
    gc.onImageRemoved((id) => execute.images.imageRemoved(id), { signal });

    // One worker per pod, and the ring that feeds them.
    const probes = this.probes(execute);
    this.pool = this.workers(observer, execute, { ...topology, probes });
    const { pool } = this;
    devices.plugins.onChange((uids) => uids.forEach((uid) => pool.wake(uid)), { signal });
    const desiredChanged = (pods: readonly Pod[]): void => {
      cluster?.wanted(pods);
      volumes.wanted(pods);
    };
    const fed = { clock, log, desired, pool, volumes, execute, desiredChanged };
    this.ring = new PodRing({ ...fed, objects: manifestObjects }, signal);
    const publish = this.ring.publish.bind(this.ring);
    const listedAt = () => this.ring.listedAt;

    // What the outside sees.
    this.view = new AgentView({ desired, pool, journal, observer });
    const podOf = (uid: string) => pool.worker(uid)?.pod ?? desired.get(uid)?.pod;
    const stored = { ...deps, host: volumeHost, runtime, volumes, observer };
    const storage = composeStorage(stored, { rootDir, podLogsDir }, signal);
    const classes = classCgroups({ driver: settings.cgroupDriver, root: settings.options.cgroupRoot });
    const { cgroups } = execute;
    const oomKills = new OomCounts();
    const stats = composeStats({
      ...shared,
      ...settings,
      runtime,
      images,
      cgroups,
      classes,
      storage,
      spaces,
      podOf,
      oomKills,
    });
    const relief = { ...shared, ...stats, nodeName, storage, pool, journal, reclaim: gc };
    const eviction = composeEviction(relief, pressure, signal);
    const streams = new PodStreams({ runtime, observer });
    const logs = logReader(clock);
    const version = reportedVersion(store.current.version);
    const reports = { images: gc.report, usage: stats.usage, topology: topology.report };
    const local = {
      ...reports,
      clock,
      log,
      logs,
      view: this.view,
      config: settings.configuration,
      storage: storageOf(storage, podOf),
      node: (limits: Abortable) => eviction.explain(limits),
      streams: { exec: streams.exec.bind(streams), portForward: streams.portForward.bind(streams), podOf },
    };
    const { details, history } = stats;
    const shown = { ...local, store, details, history, probes: (uid: string) => probes.report(uid) };
    const page = composePage(shown, { nodeName, version });
    const { ports, loops, stalled, ask } = composePorts({
      ...shared,
      nodeName,
      view: this.view,
      runtime,
      streams,
      logs,
      connection: settings.connection,
      stats: stats.pages,
      page,
      calls,
      listedAt,
      registrationTrouble: () => this.servers.devicePlugins.trouble,
      trimMemory: () => deps.host.trimMemory(),
      makeDir: (path, mode) => new PodHost(deps.host).makeDir(path, mode),
    });
    settings.local?.attach({ nodeName, ask, usage: stats.usage });
    const pageLink = (): string | undefined => ports.cadvisor?.address && page.link(ports.cadvisor.address);
    const localApi = localApiServer({ ...local, pageLink }, { nodeName, version, path: store.current.localApiSocket });
    const held = { ...podLists(desired, pool), claims: claims?.provider, compute: topology.assigned };
    this.servers = { ...ports, localApi, ...devices.servers(held), ...settings.local?.listeners };
    this.stalled = stalled;
    declarePodMetrics({ ...shared, journal, pool, view: this.view, nodeName, listedAt }, this.stop);
    declareProcessMetrics(deps.metrics, version);
    connectionMetrics(deps.metrics, clock, settings.connection);
    pool.onStatus(trimAfterBursts(deps, signal), { signal });
    const { cgroupVersion } = readKernelLimits(deps.host.cgroupMounts());
    const mismatchesNode = (pod: Pod): boolean =>
      affinityProblem(pod, { node: this.rules.admission(), others: [] }) !== undefined;
    const ofNode = { pressure, inheritPressure: eviction.inherit, mismatchesNode, cgroupVersion };
    const { shutdown } = this.rules;
    const ring = { desired, pool, journal, runtime, images, publish, shutdown };
    rotateLogs({ files: rotationFiles, runtime, clock, log }, { store, observer, pool }, signal);

    this.loops = [
      { name: "observer", run: (stop) => observer.run(stop) },
      { name: "cgroups", run: (stop) => refreshCgroups(execute.cgroups, { clock, store }, stop) },
      { name: "images", run: (stop) => execute.images.run(stop) },
      checkDriver({ clock, runtime }, settings.cgroupDriver),
      shimReport({ runtime, clock, log }, store.current.containerRuntimeEndpoint),
      ...localSources({ clock, log, store, nodeName, hasApiServer, journal, publish }),
      ...composeGuards({ ...shared, ...ring, listedAt, oomKills, hasApiServer }),
      ...(cluster?.attach({ ...ring, ...ofVolumes.attachable, ...ofNode, devices: devices.node }) ??
        standalonePodCidr({ clock, log, runtime, configured: store.current.podCIDR })),
      ...(settings.local?.loops(signal) ?? []),
      ...ofVolumes.loops,
      ...loops,
      ...gc.loops,
      ...topology.loops,
      pluginLoop,
      ...(claims?.loops ?? []),
      ...stats.loops,
      ...tracing,
      ...eviction.loops,
      ...Object.values(this.servers).map((server) => ({
        name: "server",
        run: (stop: AbortSignal) => server.run({ signal: stop }),
      })),
    ];
  }

  /** Runs until the signal aborts; a loop that ends in an error ends the agent with it. Pods are never stopped. */
  async run({ signal }: Abortable): Promise<void> {
    const onStop = (): void => this.stop.abort(signal.reason);
    if (signal.aborted) onStop();
    else signal.addEventListener("abort", onStop, { once: true });
    try {
      await runLoops(this.loops, this.stop);
    } finally {
      this.stop.abort();
      const limit = this.deps.clock.after(FINISH_MS, () => this.late.abort());
      await this.pool.idle();
      limit.cancel();
      this.late.abort();
      signal.removeEventListener("abort", onStop);
    }
  }

  /** Why the agent is unhealthy, or undefined: it must reach its runtime and serve its ports. */
  async trouble({ signal }: Abortable): Promise<string | undefined> {
    try {
      await this.runtime.version({ signal });
    } catch (error) {
      signal.throwIfAborted();
      return `get version of the runtime: ${messageOf(error)}`;
    }
    return Object.values(this.servers).find((server) => server.trouble !== undefined)?.trouble;
  }

  /** Records an event about the agent itself. */
  recordEvent(event: { readonly type: "Normal" | "Warning"; readonly reason: string; readonly message: string }): void {
    this.journal.event({ ...event, subject: this.settings.machine.nodeName });
  }

  private workers(observer: Observer, execute: ExecuteDeps, around: Topology & { probes: ProbeScheduler }): WorkerPool {
    const { clock, log, metrics } = this.deps;
    const { owner } = this.settings;
    const { desired, journal, store, rules } = this;
    return new WorkerPool(
      {
        execute,
        observer,
        desired,
        probes: around.probes,
        allocators: around.allocators,
        resizeProblem: around.resizeProblem,
        journal,
        clock,
        log,
        late: this.late.signal,
        measured: workerMetrics(metrics),
        counted: poolCounters(metrics),
      },
      poolOptions(store, rules, owner),
      this.stop.signal,
    );
  }

  private probes({ runtime }: ExecuteDeps): ProbeScheduler {
    const { clock, log, metrics, host } = this.deps;
    const { journal, settings } = this;
    const hooks = probeHooks({ journal, metrics, changed: ({ pod, kind }) => this.pool.probed(pod.uid, kind) });
    const files = recordFiles(new PodHost(host), settings.options.rootDir);
    return composeProbes({ runtime, net: probeNet, clock, log, hooks, files }, settings, this.stop.signal);
  }
}
