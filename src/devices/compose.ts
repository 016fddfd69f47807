import { numaNodes } from "../adapters/devices/numa-nodes.ts";
import { connectPlugin } from "../adapters/devices/plugin-client.ts";
import { PluginDirectory } from "../adapters/devices/plugin-directory.ts";
import { listenPodResources } from "../adapters/devices/pod-resources-server.ts";
import { listenForPlugins } from "../adapters/devices/registration-server.ts";
import type { GrpcListener } from "../adapters/grpc/server.ts";
import { KeptListener } from "../adapters/net/kept-listener.ts";
import { type agentOptions, isGateOn, type OptionStore } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { Container, Pod, ResourceStatus } from "../model/generated/types.ts";
import type { HintProvider } from "../model/topology.ts";
import { DeviceAllocator } from "./device-allocator.ts";
import { deviceContributor } from "./device-contributor.ts";
import { deviceHealth } from "./device-health.ts";
import { DevicePlugins } from "./device-plugins.ts";
import { deviceReport } from "./device-report.ts";
import type { DeviceCount } from "./inventory.ts";
import { deviceMetrics, podResourcesMetrics } from "./metrics.ts";
import { PodResources, type PodResourcesDeps } from "./pod-resources.ts";
import { PodResourcesRate } from "./pod-resources-rate.ts";
import { resourceNameProblem, versionProblem } from "./register-request.ts";

/** Milliseconds after a change of devices until the node reports it: a plugin that starts makes several. */
const TOGETHER_MS = 500;

export interface ComposeDevicesDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly store: OptionStore<typeof agentOptions>;
  /** Notes what a pod waits for; the result is called when it does not any more. */
  readonly journal: { waiting(pod: Pod, what: string): () => void };
}

/** A plugin below `plugins_registry`. */
interface WatchedPlugin {
  readonly name: string;
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** The devices of the node, as the rest of the agent uses them. */
export interface Devices {
  readonly provider: HintProvider;
  readonly contributor: ReturnType<typeof deviceContributor>;
  readonly plugins: DevicePlugins;
  /** Every device with who has it. */
  report(nameOf: Parameters<typeof deviceReport>[1]): ReturnType<typeof deviceReport>;
  /** Takes plugins of type DevicePlugin that are found below `plugins_registry`. */
  readonly handler: {
    validate(plugin: WatchedPlugin): void;
    register(plugin: WatchedPlugin, options: Abortable): Promise<void>;
    deregister(plugin: WatchedPlugin): void;
  };
  /** Reports the health of a container's devices, if the gate is on. */
  readonly health: { healthOf(pod: Pod, container: Container): readonly ResourceStatus[] };
  /** What the Node object shows. */
  readonly node: {
    counts(): ReadonlyMap<string, DeviceCount>;
    readonly isNew: boolean;
    /** Calls `fn` after changes, those of half a second together. */
    onChange(fn: () => void, options: Abortable): void;
  };
  /** The sockets that plugins register on, and of the pod resources API. */
  servers(of: Pick<PodResourcesDeps, "activePods" | "knownPods" | "compute" | "claims">): {
    readonly devicePlugins: KeptListener;
    readonly podResources: KeptListener;
  };
}

/** Device plugins, the allocation of their devices, and the pod resources API. */
export function composeDevices(deps: ComposeDevicesDeps, signal: AbortSignal): Devices {
  const { clock, log, store, journal } = deps;
  const waiting = (pod: Pod, what: string): (() => void) => journal.waiting(pod, what);
  const { rootDir } = store.current;
  const isOn = (gate: string): boolean => isGateOn(gate, store.current.featureGates);
  const directory = new PluginDirectory(`${rootDir}/device-plugins`);
  const plugins = new DevicePlugins(
    { clock, log, file: directory, connect: connectPlugin, ...deviceMetrics(deps.metrics) },
    { directory: directory.path },
    signal,
  );
  const { pods, inventory, connections } = plugins;
  const allocator = new DeviceAllocator(
    {
      inventory,
      pods,
      plugins: connections,
      ready: () => plugins.store.ready(),
      save: () => plugins.store.save(),
      saveLater: () => plugins.store.saveLater(),
      waiting,
    },
    { nodes: numaNodes(), hasClaims: () => isOn("DRAExtendedResource") },
  );
  const counted = podResourcesMetrics(deps.metrics);
  return {
    provider: allocator,
    contributor: deviceContributor({ pods, allocator, plugins: connections, waiting }),
    plugins,
    report: (nameOf) => deviceReport({ pods, inventory }, nameOf),
    handler: handlerOf(plugins),
    health: {
      healthOf: (pod, container) =>
        isOn("ResourceHealthStatus") ? deviceHealth({ pods, inventory }, pod.metadata.uid ?? "", container.name) : [],
    },
    node: {
      counts: () => inventory.counts(),
      isNew: plugins.isNew,
      onChange: (fn, options) => plugins.onChange(together(clock, fn, options), options),
    },
    servers: (of) => {
      const rate = new PodResourcesRate(clock);
      const listsActive = (): boolean => isOn("KubeletPodResourcesListUseActivePods");
      const answers = new PodResources({ ...of, devices: pods, inventory, counted, listsActive, rate });
      const kept = (name: string, listen: () => Promise<GrpcListener>): KeptListener =>
        new KeptListener({ log, clock, listen }, { name });
      return {
        devicePlugins: kept("device plugins", () =>
          listenForPlugins(directory, (request, options) => plugins.registerEndpoint(request, options)),
        ),
        podResources: kept("pod resources", () => listenPodResources(`${rootDir}/pod-resources/kubelet.sock`, answers)),
      };
    },
  };
}

/** Calls `fn` once a while after the first of several calls. */
function together(clock: Clock, fn: () => void, { signal }: Abortable): () => void {
  let timer: Timer | undefined;
  signal.addEventListener("abort", () => timer?.cancel(), { once: true });
  return () => {
    timer ??= clock.after(TOGETHER_MS, () => {
      timer = undefined;
      if (!signal.aborted) fn();
    });
  };
}

function handlerOf(plugins: DevicePlugins): Devices["handler"] {
  return {
    validate({ name, versions }) {
      const problem = versionProblem(versions) ?? resourceNameProblem(name);
      if (problem !== undefined) throw new Error(problem);
    },
    register: ({ name, endpoint, versions }, options) =>
      plugins.register({ resource: name, versions, socket: endpoint }, options),
    deregister: ({ name, endpoint }) => plugins.connections.deregister(name, endpoint),
  };
}
