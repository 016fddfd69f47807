import { randomUUID } from "node:crypto";
import { type KubeApi, NODES, Reflector } from "../adapters/kubeapi/index.ts";
import type { ImagePort, RuntimePort } from "../adapters/runtime/port.ts";
import type { agentOptions, DynamicConfiguration, OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { type Live, select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import type { Loop } from "../lib/loop.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Node } from "../model/generated/types.ts";
import type { DeviceCounts } from "./capacity.ts";
import { ConfigFollower } from "./config-follower.ts";
import { ConfigReporter } from "./config-reporter.ts";
import { configConditions } from "./config-status.ts";
import { CsiNodeKeeper } from "./csi-node.ts";
import { NodeGatherer } from "./gather.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import type { NodeAddresses } from "./node-addresses.ts";
import { NodeReporter } from "./node-reporter.ts";
import { syncPodCidr } from "./pod-cidr.ts";
import { beginnings, startupMetrics } from "./startup-metrics.ts";

/** In the words of Kubernetes. */
const CGROUP_V1_WARNING =
  "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to cgroup v2. More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1";

/** What the node's objects on the API server are built from. */
export interface ClusterNodeDeps {
  readonly clients: { readonly calls: KubeApi; readonly heartbeat: KubeApi };
  readonly addresses: NodeAddresses;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  readonly nodeName: string;
  readonly runtime: Pick<RuntimePort, "status" | "version" | "setPodCidr">;
  readonly images: Pick<ImagePort, "listImages">;
  readonly cgroupVersion: 1 | 2 | undefined;
  /** The conditions of pressure; a change is reported at once. */
  readonly pressure: Live<readonly string[]>;
  /** Takes over the conditions of before this start; true if one of them is a pressure that goes on. */
  inheritPressure(conditions: readonly string[]): boolean;
  /** True while the node shuts down; a change is reported at once. */
  readonly shutdown: Live<boolean>;
  /** The devices of plugins; a change is reported at once. */
  readonly devices?: NodeDevices | undefined;
  /** Attachable volumes that are in use, undefined while unknown; a change is reported at once. */
  readonly volumesInUse: Live<readonly string[] | undefined>;
  /** Called with the volumes of each version of the Node object. */
  nodeVolumes(volumes: NodeVolumes): void;
  /** Called when the node has a CSINode; again when that was created for a new Node object, without drivers. */
  csiNodeCreated(): void;
  /** Undefined without `--dynamic-config-dir`. */
  readonly dynamic?: DynamicConfiguration | undefined;
  /** Records an event about the node. */
  event(type: "Normal" | "Warning", reason: string, message: string): void;
}

/** Attachable volumes, as far as the Node object shows them. */
export interface NodeVolumes {
  readonly inUse: readonly string[];
  readonly attached: readonly string[];
  /** Where the attach controller says that their devices are. */
  readonly devicePaths: Readonly<Record<string, string>>;
}

/** Device plugins, as far as the Node object shows them. */
export interface NodeDevices {
  counts(): DeviceCounts;
  /** True if the agent has never kept devices on this machine: extended resources of the Node object are stale. */
  readonly isNew: boolean;
  onChange(fn: () => void, options: Abortable): void;
}

/** The Node object with its lease, its CSINode and its dynamic configuration; the loops run as long as the agent. */
export function composeClusterNode(
  deps: ClusterNodeDeps,
  { signal }: Abortable,
): { readonly reporter: NodeReporter; readonly loops: readonly Loop[] } {
  const { clock, log, runtime } = deps;
  const reporter: NodeReporter = nodeReporter(deps, () => csi.problem);
  const csi = new CsiNodeKeeper(
    {
      api: deps.clients.calls,
      clock,
      log,
      nodeUid: (options) => nextUid(reporter, options),
      done: () => {
        reporter.kick();
        deps.csiNodeCreated();
      },
    },
    deps.nodeName,
  );
  deps.pressure.onChange(() => reporter.kick(), { signal });
  deps.shutdown.onChange(() => reporter.kick(), { signal });
  deps.devices?.onChange(() => reporter.kick(), { signal });
  deps.volumesInUse.onChange(() => reporter.kick(), { signal });
  reporter.onNode(
    ({ status }) => {
      const volumes = status?.volumesAttached ?? [];
      const devicePaths = Object.fromEntries(volumes.map(({ name, devicePath }) => [name, devicePath]));
      deps.nodeVolumes({
        inUse: status?.volumesInUse ?? [],
        attached: volumes.map(({ name }) => name),
        devicePaths,
      });
    },
    { signal },
  );
  const configured = deps.store.current.podCIDR;
  const lease = leaseKeeper(deps, reporter);
  const watch = nodeWatch(deps, reporter);
  recordStart(deps);
  const startup = startupMetrics(deps.metrics, clock, beginnings(clock));
  startup.follow(reporter, { signal });
  const report = (stop: AbortSignal): Promise<void> => {
    startup.registering();
    return reporter.run(stop);
  };
  return {
    reporter,
    loops: [
      { name: "node status", run: report },
      { name: "node lease", run: (stop) => lease.run(stop) },
      { name: "CSINode", run: (stop) => csi.run(stop) },
      { name: "pod CIDR", run: (stop) => syncPodCidr({ clock, log, runtime, node: reporter, configured }, stop) },
      { name: "node watch", run: (stop) => watch.run({ signal: stop }) },
      ...dynamicConfigLoops(deps, reporter),
    ],
  };
}

/** Records the events of a start. */
export function recordStart({ cgroupVersion, event }: Pick<ClusterNodeDeps, "cgroupVersion" | "event">): void {
  event("Normal", "Starting", "Starting kubelet.");
  if (cgroupVersion === 1) event("Warning", "CgroupV1", CGROUP_V1_WARNING);
}

function nodeReporter(deps: ClusterNodeDeps, csiProblem: () => string | undefined): NodeReporter {
  const { clock, log, store, dynamic, event } = deps;
  const gatherer = new NodeGatherer({
    runtime: deps.runtime,
    images: deps.images,
    clock,
    log,
    store,
    addresses: deps.addresses,
    pressure: () => deps.pressure.current,
    devices: () => deps.devices?.counts() ?? new Map(),
    volumesInUse: () => deps.volumesInUse.current,
    problems: () => [csiProblem(), shutdownProblem(deps)].filter((problem) => problem !== undefined),
    moreConditions: (previous, now) => (dynamic === undefined ? [] : configConditions(dynamic.report(), previous, now)),
  });
  return new NodeReporter(
    {
      api: deps.clients.heartbeat,
      clock,
      log,
      random: Math.random,
      event,
      gather: (previous, options) => gatherer.gather(previous, options),
      inherit: (conditions) => deps.inheritPressure(conditions),
    },
    {
      identity: gatherer.identity(deps.nodeName),
      registers: store.current.registerNode,
      zeroesExtended: deps.devices?.isNew === true,
      frequency: select(store.live("nodeStatusUpdateFrequency", "nodeStatusReportFrequency"), (o) => ({
        updateMs: o.nodeStatusUpdateFrequency,
        reportMs: o.nodeStatusReportFrequency,
      })),
    },
  );
}

/** In the words of Kubernetes. */
function shutdownProblem({ shutdown }: Pick<ClusterNodeDeps, "shutdown">): string | undefined {
  return shutdown.current ? "node is shutting down" : undefined;
}

function leaseKeeper(deps: ClusterNodeDeps, reporter: NodeReporter): LeaseKeeper {
  const { clock, log, store, event } = deps;
  return new LeaseKeeper(
    {
      api: deps.clients.heartbeat,
      clock,
      log,
      random: Math.random,
      nodeUid: () => reporter.current?.metadata.uid,
      rival: (message) => {
        log.error("Found another agent with the same node name", new Error(message));
        event("Warning", "NodeNameConflict", message);
      },
    },
    {
      nodeName: deps.nodeName,
      instance: randomUUID(),
      durationSeconds: select(store.live("nodeLeaseDurationSeconds"), (o) => o.nodeLeaseDurationSeconds),
    },
  );
}

function nodeWatch({ clients, clock, log, nodeName }: ClusterNodeDeps, reporter: NodeReporter): Reflector<Node> {
  return new Reflector<Node>(
    { api: clients.calls, clock },
    {
      resource: NODES,
      select: { fieldSelector: `metadata.name=${nodeName}` },
      firstList: "latest",
      onChange: ({ kind, object }) => reporter.observed(kind === "deleted" ? undefined : object),
      onSync: () => reporter.watchSynced(),
      onError: ({ code, message }) => log.warn("Failed to watch node", { code, error: message }),
    },
  );
}

/** Follows the configuration that the Node object assigns, and reports its state. */
function dynamicConfigLoops(deps: ClusterNodeDeps, reporter: NodeReporter): readonly Loop[] {
  const { clients, clock, log, nodeName, dynamic, event } = deps;
  if (dynamic === undefined) return [];
  const shared = { api: clients.calls, clock, log, random: Math.random, dynamic, node: reporter };
  const follower = new ConfigFollower(shared, nodeName);
  const configReporter = new ConfigReporter({ ...shared, event }, nodeName);
  return [
    { name: "assigned configuration", run: (signal) => follower.run(signal) },
    { name: "configuration status", run: (signal) => configReporter.run(signal) },
  ];
}

/** Resolves to the node's UID as soon as it differs from `not`. */
function nextUid(reporter: NodeReporter, { signal, not }: Abortable & { not: string | undefined }): Promise<string> {
  return new Promise((resolve, reject) => {
    const check = (node: Node | undefined): void => {
      const uid = node?.metadata.uid;
      if (uid !== undefined && uid !== not) resolve(uid);
    };
    // The reason of an abort is an error by this project's own rule.
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    reporter.onNode(check, { signal });
    check(reporter.current);
  });
}
