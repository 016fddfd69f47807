import type { ApiConnection } from "../adapters/kubeapi/index.ts";
import type { ImagePort, RuntimePort } from "../adapters/runtime/port.ts";
import { type ClaimRing, type ComposedClaims, composeClaims } from "../claims/index.ts";
import type { agentOptions, DynamicConfiguration, OptionStore } from "../config/index.ts";
import { recordJournal } from "../events/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { Live } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import { type Loop, untilAborted } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Node, Pod } from "../model/generated/types.ts";
import {
  CsiDriverReport,
  composeClusterNode,
  type NodeAddresses,
  type NodeDevices,
  type NodeReporter,
  type NodeVolumes,
} from "../node/index.ts";
import type { DesiredPods, Journal, WorkerPool } from "../pods/index.ts";
import {
  ApiClaims,
  ApiFacts,
  ApiObjects,
  ApiPods,
  ApiTokens,
  ApiTrustBundles,
  type CertificateSources,
  composePodCertificates,
  OfflineStart,
  pollTimes,
  type Snapshot,
} from "../sources/index.ts";
import { composePodStatuses, type PodStatuses } from "../status/index.ts";

/** The clients of the API server, and the node's addresses there. */
export interface ClusterConnection extends ApiConnection {
  readonly addresses: NodeAddresses;
  /** True if the API is this agent's own: it is there whenever the agent is, and manifests stand beside it. */
  readonly isLocal?: boolean;
}

/** What the parts that face the API server are built from. */
export interface ClusterDeps {
  readonly connection: ClusterConnection;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly nodeName: string;
  /** Undefined without `--dynamic-config-dir`. */
  readonly dynamic?: DynamicConfiguration | undefined;
  /** Aborts when the agent stops. */
  readonly signal: AbortSignal;
}

/** The ring, as far as the cluster needs it. */
export interface ClusterRing {
  readonly desired: DesiredPods;
  readonly pool: WorkerPool;
  readonly journal: Journal;
  readonly runtime: Pick<RuntimePort, "status" | "version" | "setPodCidr">;
  readonly images: Pick<ImagePort, "listImages">;
  publish(snapshot: Snapshot): void;
  readonly cgroupVersion: 1 | 2 | undefined;
  readonly devices: NodeDevices;
  /** The conditions of pressure. */
  readonly pressure: Live<readonly string[]>;
  /** Takes over the conditions of before this start; true if one of them is a pressure that goes on. */
  inheritPressure(conditions: readonly string[]): boolean;
  readonly volumesInUse: Live<readonly string[] | undefined>;
  nodeVolumes(volumes: NodeVolumes): void;
  readonly shutdown: Live<boolean>;
  /** True if the pod's node selector or affinity does not match the node's labels. */
  mismatchesNode(pod: Pod): boolean;
}

/** Everything that talks to the API server: pods in, status and events out, the node, and the objects of pods. */
export class Cluster {
  readonly objects: ApiObjects;
  readonly tokens: ApiTokens;
  readonly trustBundles: ApiTrustBundles;
  readonly csiDrivers: CsiDriverReport;
  /** Services and RuntimeClasses. */
  readonly facts: ApiFacts;
  /** Undefined with the local API, which is never away. */
  private readonly offline: OfflineStart | undefined;
  private reporter: NodeReporter | undefined;
  private pods: ApiPods | undefined;
  private statuses: PodStatuses | undefined;

  constructor(private readonly deps: ClusterDeps) {
    const { clock, log, connection, signal } = deps;
    const api = connection.clients.calls;
    const changed = (): void => this.offline?.touch();
    const poll = pollTimes(deps.store, () => this.currentNode());
    this.objects = new ApiObjects({ api, clock, changed, ...(poll && { poll }) }, signal);
    this.tokens = new ApiTokens({ api, clock, random: Math.random });
    this.trustBundles = new ApiTrustBundles({ api, clock, log }, signal);
    this.facts = new ApiFacts({ api, clock, log });
    this.csiDrivers = new CsiDriverReport({ api, clock, log }, deps.nodeName, signal);
    const { objects, facts } = this;
    const mayHoldSecrets = (): boolean => deps.store.current.checkpointSecrets;
    const checkpointed = { clock, log, objects, facts, mayHoldSecrets, pods: () => this.pods };
    this.offline = connection.isLocal ? undefined : new OfflineStart(checkpointed, deps.store.current.rootDir);
  }

  /** The Node object of the API server; undefined before it is registered. */
  currentNode(): Node | undefined {
    return this.reporter?.current;
  }

  /** The API server's newest copy of a pod of this node; undefined if it has none. */
  pod(namespace: string, name: string): Pod | undefined {
    return this.pods?.named(namespace, name);
  }

  /** What volumes are made from besides objects. */
  volumeSources(
    journal: Journal,
  ): CertificateSources & Pick<Cluster, "tokens" | "trustBundles" | "csiDrivers"> & { readonly claims: ApiClaims } {
    const { deps, tokens, trustBundles, csiDrivers } = this;
    const claims = new ApiClaims(deps.connection.clients.calls);
    const certificates = { ...deps, api: deps.connection.clients.calls, journal, node: () => this.currentNode() };
    return { tokens, trustBundles, csiDrivers, claims, ...composePodCertificates(certificates, deps.signal) };
  }

  /** Dynamic resource allocation. */
  claims(ring: ClaimRing): ComposedClaims {
    const { connection, nodeName, signal } = this.deps;
    const isRegistered = () => this.reporter?.current !== undefined;
    return composeClaims({ ...this.deps, ...ring, api: connection.clients.calls, nodeName, isRegistered }, signal);
  }

  /** The desired pods changed: their objects are watched, mirrors of others are deleted. */
  wanted(pods: readonly Pod[]): void {
    this.objects.wanted(pods);
    this.tokens.wanted(pods);
    this.statuses?.desiredChanged();
    if (this.pods?.hasSynced) this.offline?.touch();
  }

  /** Connects the ring; the loops run as long as the agent. */
  attach(ring: ClusterRing): readonly Loop[] {
    const { clock, log, metrics, connection, nodeName, signal } = this.deps;
    const { clients } = connection;
    const { pool, desired, journal } = ring;
    const events = recordJournal(
      {
        api: clients.events,
        clock,
        log,
        metrics,
        random: Math.random,
        journal,
        isBusy: () => pool.isStarting,
        podOf: (uid) => pool.worker(uid)?.pod ?? desired.get(uid)?.pod,
      },
      nodeName,
      { signal },
    );
    const node = composeClusterNode(
      {
        ...this.deps,
        ...ring,
        clients,
        addresses: connection.addresses,
        csiNodeCreated: () => this.csiDrivers.publishAgain(),
        event: (type, reason, message) => journal.event({ type, reason, message, subject: nodeName }),
      },
      { signal },
    );
    const { synced } = node.reporter;
    const podNode = {
      synced,
      mismatches: (pod: Pod) => ring.mismatchesNode(pod),
      refetch: (options: Abortable) => node.reporter.refetch(options),
    };
    const pods: ApiPods = new ApiPods(
      {
        api: clients.calls,
        clock,
        log,
        node: podNode,
        publish: (snapshot) => ring.publish(snapshot),
        seen: (pod, isDeleted) => {
          statuses.seen(pod, isDeleted);
          if (pods.hasSynced) this.offline?.seen(pod);
        },
      },
      { nodeName },
    );
    const statuses = composePodStatuses(
      { api: clients.calls, clock, log, metrics, pool, desired, pods, node: node.reporter },
      { signal },
    );
    const { offline } = this;
    this.pods = pods;
    this.statuses = statuses;
    this.reporter = node.reporter;
    return [
      ...node.loops,
      { name: "API pods", run: (stop) => pods.run(stop) },
      ...statuses.loops,
      { name: "services and runtime classes", run: (stop) => this.facts.run(stop) },
      ...(offline === undefined
        ? []
        : [{ name: "offline start", run: (stop: AbortSignal) => offline.run(pods, { signal: stop }) }]),
      events,
      ...(connection.rotate === undefined ? [] : [{ name: "client certificate", run: connection.rotate }]),
      { name: "API connections", run: (stop) => untilAborted(stop).then(() => clients.close()) },
    ];
  }
}
