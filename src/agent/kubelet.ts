import { eventMetrics, runtimeCallMetrics } from "../adapters/cri/call-metrics.ts";
import { CriImages } from "../adapters/cri/cri-images.ts";
import { CriRuntime } from "../adapters/cri/cri-runtime.ts";
import { manifestFiles } from "../adapters/host/manifest-files.ts";
import { hasSelinux } from "../adapters/host/node-facts.ts";
import { openQuotas } from "../adapters/host/open-quotas.ts";
import { PodHost } from "../adapters/host/pod-host.ts";
import { LinuxVolumeHost, type VolumeHostDeps } from "../adapters/host/volume-host.ts";
import { declareCertificateMetrics } from "../adapters/kubeapi/certificate-metrics.ts";
import { restClientMetrics } from "../adapters/kubeapi/client-metrics.ts";
import { fetchManifest } from "../adapters/net/http-get.ts";
import { probeNet } from "../adapters/net/probe-net.ts";
import { type AgentOptions, agentOptions, type DynamicConfiguration, isGateOn, OptionStore } from "../config/index.ts";
import { ImagePuller, imageMetrics, pullSecrets } from "../images/index.ts";
import { type Abortable, isAborted, manyListeners } from "../lib/abort.ts";
import type { Clock, Instant } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { watchPath } from "../lib/file-watch.ts";
import { select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import { declareProcessMetrics } from "../lib/process-metrics.ts";
import { reportedVersion } from "../lib/version.ts";
import { parseDocuments } from "../lib/yaml.ts";
import type { AgentConfiguration } from "../localapi/index.ts";
import { OWNER_ANNOTATION } from "../model/labels.ts";
import { NodeRules } from "../node/index.ts";
import {
  AgentView,
  countOutcomes,
  countPods,
  countRequestedResizes,
  countResizes,
  crashLimits,
  DesiredPods,
  declareNodeGauges,
  type ExecuteDeps,
  Journal,
  Observer,
  poolCounters,
  Rejections,
  readMetrics,
  rejectionFile,
  relistMetrics,
  removeDeadLinks,
  removeRemains,
  terminationMessage,
  thermalPaths,
  type UserPool,
  UserRanges,
  WorkerPool,
  workerMetrics,
} from "../pods/index.ts";
import { composeProbes, type ProbeScheduler, probeHooks, recordFiles } from "../probes/index.ts";
import { type CgroupDriver, composeResources, type ResourceHost, refreshCgroups } from "../resources/index.ts";
import { FileSource, ObjectStore, type Snapshot, type SourceProblem, UrlSource } from "../sources/index.ts";
import { composeStorage, type StorageAccounts, storageOf, VolumeReconciler } from "../volumes/index.ts";
import { Cluster, type ClusterConnection } from "./cluster.ts";
import { composeServers, type Servers } from "./servers.ts";

/** The gate for measuring emptyDirs of pods with a user namespace by quotas. */
const QUOTA_GATE = "LocalStorageCapacityIsolationFSQuotaMonitoring";
/** How long creates and starts may take to finish once the agent was told to stop. */
const FINISH_MS = 5000;
/** glibc gives nothing back by itself: memory is trimmed this long after the last change of a burst. */
const TRIM_AFTER_MS = 10_000;
/** However often the configuration asks for it, everything is not listed more often than this. */
const SHORTEST_AUDIT_MS = 1000;
/** The pod sources. Each runs even without a path or URL, which may come while the agent runs. */
const LOCAL_SOURCES = ["file", "http"];
/** A source that has nothing to look at wakes only when its settings change; the number is a day. */
const NOTHING_TO_CHECK_MS = 86_400_000;

/** What the agent needs of the machine; `LinuxHost` provides it. */
export interface KubeletHost extends VolumeHostDeps, ResourceHost {
  trimMemory(): void;
}

/** What is true of the machine while the agent runs. */
export interface MachineFacts {
  readonly nodeName: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly addresses: readonly string[];
}

export interface KubeletDeps {
  readonly host: KubeletHost;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Settings of one run, found out before it begins. */
export interface KubeletSettings {
  readonly options: AgentOptions;
  readonly machine: MachineFacts;
  readonly cgroupDriver: CgroupDriver;
  /** `containerd`, `cri-o` …: the scheme of container ids. */
  readonly runtimeName: string;
  /** The flat directory of log links, /var/log/containers by default. */
  readonly containerLogsDir: string;
  /** The ids that pods with their own users may take, where the administrator set some aside. */
  readonly userPool?: UserPool | undefined;
  /** On a runtime that others use too: stop only those unknown pods that carry this mark. */
  readonly owner?: string;
  /** The options where they may change while the agent runs; it holds `options` at the start. */
  readonly store?: OptionStore<typeof agentOptions>;
  /** What the commands about the configuration ask. */
  readonly configuration?: AgentConfiguration;
  /** What the cluster may change it by; missing without `--dynamic-config-dir`. */
  readonly dynamic?: DynamicConfiguration | undefined;
  /** Missing for an agent that runs alone. */
  readonly connection?: ClusterConnection;
}

/** The agent, built from its parts: sources → desired → workers → runtime → observed, and those who look at it. */
export class Kubelet {
  readonly view: AgentView;
  readonly servers: Servers;
  readonly desired: DesiredPods;
  /** What pods keep on the node; costs nothing until somebody reads it. */
  readonly storage: StorageAccounts;
  private readonly journal: Journal;
  /** ConfigMaps and Secrets of manifests beside the pods. */
  private readonly objects = new ObjectStore();
  private readonly cluster: Cluster | undefined;
  private readonly rules: NodeRules;
  private readonly sourceNames: readonly string[];
  private readonly volumeHost: LinuxVolumeHost;
  private readonly volumes: VolumeReconciler;
  /** UIDs that the runtime listed last. */
  private inRuntime: ReadonlySet<string> | undefined;
  /** When the runtime was listed last. */
  private listedAt: Instant | undefined;
  /** No directory of a pod that nobody knows is left. */
  private isSwept = false;
  private readonly store: OptionStore<typeof agentOptions>;
  private readonly runtime: CriRuntime;
  private readonly execute: ExecuteDeps;
  private readonly pool: WorkerPool;
  private readonly loops: readonly Loop[];
  private readonly stop = manyListeners();
  private readonly late = manyListeners();

  constructor(
    private readonly deps: KubeletDeps,
    private readonly settings: KubeletSettings,
  ) {
    const { clock } = deps;
    this.store = settings.store ?? new OptionStore(agentOptions, settings.options);
    this.journal = new Journal({ clock });
    this.cluster = this.joinCluster();
    this.rules = new NodeRules({
      nodeName: settings.machine.nodeName,
      options: () => this.store.current,
      apiNode: () => this.cluster?.currentNode(),
    });
    this.sourceNames = this.cluster === undefined ? LOCAL_SOURCES : [...LOCAL_SOURCES, "api"];
    this.desired = new DesiredPods({ clock }, { sources: this.sourceNames });
    const quotas = openQuotas(deps, () => isGateOn(QUOTA_GATE, this.store.current.featureGates));
    this.volumeHost = new LinuxVolumeHost(deps.host, clock, { quotas });
    this.volumes = this.makeVolumes();
    const { runtime, images } = this.connect();
    this.runtime = runtime;
    const observer = this.observe(runtime);
    this.execute = this.executors({ runtime, images, observer });
    this.pool = this.staff(observer, this.execute);
    this.view = new AgentView({ desired: this.desired, pool: this.pool, journal: this.journal, observer });
    this.storage = composeStorage(
      { host: this.volumeHost, clock, log: deps.log, runtime },
      { rootDir: settings.options.rootDir, podLogsDir: settings.options.podLogsDir },
      this.stop.signal,
    );
    const { servers, loops } = composeServers({
      ...{ clock, log: deps.log, metrics: deps.metrics, store: this.store, runtime, observer, view: this.view },
      nodeName: settings.machine.nodeName,
      listedAt: () => this.listedAt,
      storage: storageOf(this.storage, (uid) => this.pool.worker(uid)?.pod ?? this.desired.get(uid)?.pod),
      trimMemory: () => deps.host.trimMemory(),
      makeDir: (path, mode) => new PodHost(deps.host).makeDir(path, mode),
      ...{ configuration: settings.configuration, connection: settings.connection },
    });
    this.servers = servers;
    this.loops = [
      { name: "observer", run: (signal) => observer.run(signal) },
      { name: "cgroups", run: (signal) => refreshCgroups(this.execute.cgroups, clock, signal) },
      ...this.sources(),
      ...(this.cluster?.attach({
        ...{ desired: this.desired, pool: this.pool, journal: this.journal, runtime, images },
        publish: (snapshot) => this.publish(snapshot),
      }) ?? []),
      ...loops,
      ...Object.values(this.servers).map((server) => ({
        name: "server",
        run: (signal: AbortSignal) => server.run({ signal }),
      })),
    ];
    this.trimAfterBursts();
    this.count(observer);
  }

  /** Runs until the signal aborts; a loop that ends in an error ends the agent with it. Pods are never stopped. */
  async run({ signal }: Abortable): Promise<void> {
    const onStop = (): void => this.stop.abort(signal.reason);
    if (signal.aborted) onStop();
    else signal.addEventListener("abort", onStop, { once: true });
    try {
      await Promise.all(this.loops.map((loop) => this.guard(loop)));
    } finally {
      this.stop.abort();
      const limit = this.deps.clock.after(FINISH_MS, () => this.late.abort());
      await this.pool.idle();
      limit.cancel();
      this.late.abort();
      signal.removeEventListener("abort", onStop);
    }
  }

  private async guard(loop: Loop): Promise<void> {
    const { signal } = this.stop;
    try {
      await loop.run(signal);
      if (!signal.aborted) throw new Error(`the ${loop.name} ended by itself`);
    } catch (error) {
      if (isAborted(error, signal)) return;
      this.stop.abort(error);
      throw error;
    }
  }

  /** What is wrong with the agent itself, or undefined: it must reach its runtime and serve its ports. */
  async trouble({ signal }: Abortable): Promise<string | undefined> {
    try {
      await this.runtime.version({ signal });
    } catch (error) {
      signal.throwIfAborted();
      return `the runtime does not answer: ${messageOf(error)}`;
    }
    return Object.values(this.servers).find((server) => server.trouble !== undefined)?.trouble;
  }

  private connect(): { runtime: CriRuntime; images: CriImages } {
    const { options } = this.settings;
    const requestTimeoutMs = select(this.store.live("runtimeRequestTimeout"), (o) => o.runtimeRequestTimeout);
    const endpoint = options.containerRuntimeEndpoint;
    const deps = { ...this.deps, onCall: runtimeCallMetrics(this.deps.metrics) };
    return {
      runtime: new CriRuntime({ ...deps, onEvents: eventMetrics(this.deps.metrics) }, { requestTimeoutMs, endpoint }),
      images: new CriImages(deps, { requestTimeoutMs, endpoint: options.imageServiceEndpoint || endpoint }),
    };
  }

  private observe(runtime: CriRuntime): Observer {
    const { metrics, log, clock, host } = this.deps;
    const missed = metrics.counter(
      "kubelet_ts_audit_missed_total",
      "Changes that the audit saw and no event had told.",
    );
    const files = new PodHost(host);
    return new Observer(
      { runtime, clock, log },
      {
        ...{ relisted: relistMetrics(metrics, clock), read: readMetrics(metrics) },
        wake: (uid) => this.pool.wake(uid),
        listed: (pods) => {
          this.listedAt = clock.now();
          void this.rules.refresh(runtime, { signal: this.stop.signal });
          this.pool.listed(pods);
          this.inRuntime = new Set(pods.keys());
          this.removeOrphans();
        },
        missed: (uid) => {
          missed.inc();
          log.warn("no event told of a change in the runtime", { uid, source: runtime.eventSource });
        },
        endMessage: (container) => terminationMessage(files, container),
      },
      select(this.store.live("syncFrequency"), (o) => Math.max(SHORTEST_AUDIT_MS, o.syncFrequency)),
    );
  }

  private executors(parts: { runtime: CriRuntime; images: CriImages; observer: Observer }): ExecuteDeps {
    const { clock, log, host } = this.deps;
    const { settings } = this;
    const { options, machine } = settings;
    const files = new PodHost(host);
    const { cgroups, limits } = composeResources({ deps: this.deps, settings, options: () => this.store.current });
    const pulls = select(
      this.store.live("serializeImagePulls", "maxParallelImagePulls", "registryPullQPS", "registryBurst"),
      (o) => ({
        parallel: o.serializeImagePulls ? 1 : (o.maxParallelImagePulls ?? 0),
        qps: o.registryPullQPS,
        burst: o.registryBurst,
      }),
    );
    return {
      ...{ runtime: parts.observer.recording(parts.runtime), files, clock, log },
      images: new ImagePuller(
        {
          ...{ images: parts.images, clock, counted: imageMetrics(this.deps.metrics) },
          ...(this.cluster && { credentials: pullSecrets({ objects: this.cluster.objects, log }) }),
        },
        pulls,
        this.stop.signal,
      ),
      ...(this.cluster && { cluster: this.cluster.facts }),
      ...{ volumes: this.volumes, objects: this.cluster?.objects ?? this.objects },
      cgroups,
      users: new UserRanges(files, {
        ...{ rootDir: options.rootDir, pool: settings.userPool },
        idsPerPod: () => this.store.current.idsPerPod,
      }),
      node: {
        paths: {
          rootDir: options.rootDir,
          podLogsDir: options.podLogsDir,
          containerLogsDir: settings.containerLogsDir,
        },
        ...{ hostIps: machine.addresses, limits, runtimeName: settings.runtimeName },
        allocatable: () => this.rules.resources().allocatable,
        extraMaskedPaths: thermalPaths(files),
        hasRecursiveReadOnly: () => this.rules.hasRecursiveReadOnly,
        hasSelinux: hasSelinux(),
        security: () => this.store.current,
        seccompDefault: options.seccompDefault || options.seccompDefaultFlag,
        ...(settings.owner === undefined ? {} : { owner: settings.owner }),
        dns: () => {
          const { resolvConf, clusterDNS, clusterDomain } = this.store.current;
          return {
            resolvConf: resolvConf === "" ? undefined : files.readSmall(resolvConf),
            hostIps: machine.addresses,
            clusterDns: clusterDNS,
            clusterDomain,
          };
        },
        hostsFile: () => files.readSmall("/etc/hosts"),
      },
      httpGet: (request, options) => probeNet.http(request, options),
    };
  }

  private probes({ runtime }: ExecuteDeps): ProbeScheduler {
    const { clock, log, metrics, host } = this.deps;
    const { journal, settings } = this;
    const hooks = probeHooks({ journal, metrics, changed: ({ pod, kind }) => this.pool.probed(pod.uid, kind) });
    const files = recordFiles(new PodHost(host), settings.options.rootDir);
    return composeProbes({ runtime, net: probeNet, clock, log, hooks, files }, settings, this.stop.signal);
  }

  private staff(observer: Observer, execute: ExecuteDeps): WorkerPool {
    const { clock, log } = this.deps;
    const { owner } = this.settings;
    const { desired, journal } = this;
    return new WorkerPool(
      {
        ...{ execute, observer, desired, probes: this.probes(execute), journal, clock, log, late: this.late.signal },
        ...{ measured: workerMetrics(this.deps.metrics), counted: poolCounters(this.deps.metrics) },
        rejections: new Rejections({
          log,
          file: rejectionFile(new PodHost(this.deps.host), this.settings.options.rootDir),
        }),
      },
      {
        maxConcurrentStarts: select(
          this.store.live("maxConcurrentStarts"),
          (o) => o.maxConcurrentStarts || this.rules.usefulStarts,
        ),
        node: () => this.rules.admission(),
        deadLimits: select(
          this.store.live("maximumDeadContainersPerContainer", "minimumContainerTTLDuration"),
          ({ maximumDeadContainersPerContainer: perContainer, minimumContainerTTLDuration: minAgeMs }) => ({
            perContainer,
            minAgeMs,
          }),
        ),
        crashLimits: crashLimits(() => this.store.current.maxContainerRestartPeriod),
        ownsUnknown: ({ annotations }) => owner === undefined || annotations[OWNER_ANNOTATION] === owner,
      },
      this.stop.signal,
    );
  }

  private sources(): Loop[] {
    const { clock } = this.deps;
    const { machine } = this.settings;
    const { nodeName } = machine;
    const shared = {
      clock,
      parse: (text: string, { signal }: Abortable) => parseDocuments(text, { clock, signal }),
      publish: (snapshot: Snapshot) => this.publish(snapshot),
      report: (problem: SourceProblem) => this.report(problem),
    };
    const file = new FileSource(
      { ...shared, files: manifestFiles, watch: (path, watch) => watchPath(path, { ...watch, clock }) },
      select(this.store.live("staticPodPath", "fileCheckFrequency"), (o) => ({
        ...{ path: o.staticPodPath, nodeName, hasApiServer: this.cluster !== undefined },
        checkFrequencyMs: o.staticPodPath === "" ? NOTHING_TO_CHECK_MS : o.fileCheckFrequency,
      })),
    );
    const url = new UrlSource(
      { ...shared, fetchManifest },
      select(this.store.live("staticPodURL", "staticPodURLHeader", "httpCheckFrequency"), (o) => ({
        ...{ url: o.staticPodURL, headers: o.staticPodURLHeader, nodeName, hasApiServer: this.cluster !== undefined },
        checkFrequencyMs: o.staticPodURL === "" ? NOTHING_TO_CHECK_MS : o.httpCheckFrequency,
      })),
    );
    return [
      { name: "file", run: (signal) => file.run(signal) },
      { name: "http", run: (signal) => url.run(signal) },
    ];
  }

  /** What a source wants now. Objects come first, so that a pod and what it refers to may come in one file. */
  private publish(snapshot: Snapshot): void {
    this.objects.apply(snapshot.source, snapshot.objects);
    const change = this.desired.apply(snapshot);
    const wanted = this.desired.list().map(({ pod }) => pod);
    this.cluster?.wanted(wanted);
    this.volumes.wanted(wanted);
    this.pool.apply(change);
    this.removeOrphans();
  }

  private joinCluster(): Cluster | undefined {
    const { clock, log, metrics } = this.deps;
    const { connection, dynamic, machine } = this.settings;
    if (connection === undefined) return undefined;
    const { store, stop } = this;
    const { nodeName } = machine;
    return new Cluster({ connection, clock, log, metrics, store, nodeName, dynamic, signal: stop.signal });
  }

  private makeVolumes(): VolumeReconciler {
    const { clock, log } = this.deps;
    const { options } = this.settings;
    const { rules } = this;
    return new VolumeReconciler(
      {
        ...{ host: this.volumeHost, objects: this.cluster?.objects ?? this.objects, clock, log },
        ...(this.cluster && { tokens: this.cluster.tokens, trustBundles: this.cluster.trustBundles }),
        // Read at each use: reservations and labels change while the agent runs.
        node: {
          get allocatable() {
            return rules.resources().allocatable;
          },
          get labels() {
            return rules.admission().labels;
          },
        },
        event: (pod, { type, reason, message }) => this.journal.of(pod).event(type, reason, message),
        waiting: (pod, next) => this.journal.of(pod).setNext(next),
      },
      { rootDir: options.rootDir },
    );
  }

  /** Directories of pods that no source and no runtime knows go, once all have said what they know. */
  private removeOrphans(): void {
    const { desired, inRuntime } = this;
    const isUnclear = !desired.allSourcesReady || this.sourceNames.some((source) => desired.isIncomplete(source));
    if (this.isSwept || isUnclear || inRuntime === undefined) return;
    this.isSwept = true;
    const isKnown = (uid: string): boolean =>
      inRuntime.has(uid) || desired.get(uid) !== undefined || this.pool.worker(uid) !== undefined;
    const { signal } = this.stop;
    const rest = (uid: string): Promise<void> => removeRemains(this.execute, uid);
    const sweep = async (): Promise<readonly string[]> => {
      const left = await this.volumes.removeOrphans(isKnown, { signal, rest });
      await removeDeadLinks(this.execute);
      return left;
    };
    sweep().then(
      (left) => {
        // What is left is tried again when something is listed next.
        this.isSwept = left.length === 0;
      },
      (error: unknown) => {
        if (!isAborted(error, signal)) this.deps.log.error("directories of pods could not be looked at", error);
        this.isSwept = false;
      },
    );
  }

  /** A manifest that cannot be used: said in the log, and as an event under the file's name. */
  private report({ file, line, message }: SourceProblem): void {
    this.deps.log.warn("a manifest cannot be used", { file, ...(line === undefined ? {} : { line }), message });
    const place = line === undefined ? file : `${file}:${line}`;
    this.journal.event({ type: "Warning", reason: "InvalidManifest", message, subject: place });
  }

  /** An event about the agent itself. */
  tell(event: { readonly type: "Normal" | "Warning"; readonly reason: string; readonly message: string }): void {
    this.journal.event({ ...event, subject: this.settings.machine.nodeName });
  }

  private trimAfterBursts(): void {
    const { clock, host } = this.deps;
    const { signal } = this.stop;
    let timer = clock.after(TRIM_AFTER_MS, () => host.trimMemory());
    const restart = (): void => {
      timer.cancel();
      timer = clock.after(TRIM_AFTER_MS, () => host.trimMemory());
    };
    this.pool.onStatus(restart, { signal });
    signal.addEventListener("abort", () => timer.cancel(), { once: true });
  }

  private count(observer: Observer): void {
    const { metrics } = this.deps;
    const phases = (): Iterable<readonly [readonly string[], number]> => {
      const counted = new Map<string, number>();
      for (const { phase } of this.view.summaries()) counted.set(phase, (counted.get(phase) ?? 0) + 1);
      return [...counted].map(([phase, count]) => [[phase], count] as const);
    };
    metrics.gaugeFrom("kubelet_ts_pods", "Pods by phase.", { labels: ["phase"], values: phases });
    const { clock } = this.deps;
    const { desired, pool, journal } = this;
    const { nodeName } = this.settings.machine;
    for (const count of [countPods, countOutcomes, countResizes, countRequestedResizes]) {
      count({ clock, metrics, journal, desired, pool }, { signal: this.stop.signal });
    }
    declareNodeGauges(metrics, { nodeName, desired, pool, observer, listedAt: () => this.listedAt });
    declareProcessMetrics(metrics, reportedVersion(this.store.current.version));
    const { connection } = this.settings;
    connection?.clients.onAnswer(restClientMetrics(metrics));
    if (connection?.certificate)
      declareCertificateMetrics(metrics, clock, { kind: "client", facts: connection.certificate });
  }
}
