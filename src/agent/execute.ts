import { hasSelinux } from "../adapters/host/node-facts.ts";
import { PodHost } from "../adapters/host/pod-host.ts";
import type { LinuxVolumeHost } from "../adapters/host/volume-host.ts";
import { probeNet } from "../adapters/net/probe-net.ts";
import type { ImagePort } from "../adapters/runtime/port.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import { composePuller, type ImagePuller } from "../images/index.ts";
import type { NodeRules } from "../node/index.ts";
import { type ExecuteDeps, type Journal, thermalPaths, UserRanges } from "../pods/index.ts";
import { composeResources } from "../resources/index.ts";
import type { ObjectStore } from "../sources/index.ts";
import { VolumeReconciler } from "../volumes/index.ts";
import type { Cluster } from "./cluster.ts";
import type { KubeletDeps, KubeletSettings } from "./kubelet.ts";

/** What the executors of the ring are built from. */
export interface ExecuteParts {
  readonly deps: KubeletDeps;
  readonly settings: KubeletSettings;
  readonly store: OptionStore<typeof agentOptions>;
  readonly rules: NodeRules;
  readonly cluster: Cluster | undefined;
  /** ConfigMaps and Secrets of manifests, for an agent without an API server. */
  readonly objects: ObjectStore;
  readonly signal: AbortSignal;
  /** Records an event about the node. */
  readonly event: (type: "Normal" | "Warning", reason: string, message: string) => void;
}

/** Volumes of pods. */
export function composeVolumes(
  { deps, settings, rules, cluster, objects }: ExecuteParts,
  { host, journal }: { readonly host: LinuxVolumeHost; readonly journal: Journal },
): VolumeReconciler {
  const { clock, log, metrics } = deps;
  return new VolumeReconciler(
    {
      host,
      objects: cluster?.objects ?? objects,
      clock,
      log,
      metrics,
      ...(cluster && { tokens: cluster.tokens, trustBundles: cluster.trustBundles }),
      // Read at each use: reservations and labels change while the agent runs.
      node: {
        get allocatable() {
          return rules.resources().allocatable;
        },
        get labels() {
          return rules.admission().labels;
        },
      },
      event: (pod, { type, reason, message }) => journal.of(pod).event(type, reason, message),
      waiting: (pod, next) => journal.of(pod).setNext(next),
    },
    { rootDir: settings.options.rootDir },
  );
}

/** Everything that the executors act through. */
export function composeExecute(
  parts: ExecuteParts,
  ring: Pick<ExecuteDeps, "runtime" | "volumes"> & { readonly images: ImagePort },
): ExecuteDeps & { readonly images: ImagePuller } {
  const { deps, settings, store, cluster } = parts;
  const { clock, log } = deps;
  const files = new PodHost(deps.host);
  const { cgroups, limits } = composeResources({ deps, settings, options: () => store.current, event: parts.event });
  const { images, ...rest } = ring;
  return {
    ...rest,
    files,
    clock,
    log,
    cgroups,
    images: composePuller({ ...deps, images, store, objects: cluster?.objects, tokens: cluster?.tokens }, parts.signal),
    objects: cluster?.objects ?? parts.objects,
    ...(cluster && { cluster: cluster.facts }),
    users: new UserRanges(files, {
      rootDir: settings.options.rootDir,
      pool: settings.userPool,
      idsPerPod: () => store.current.idsPerPod,
    }),
    node: nodeFacts(parts, { files, limits }),
    httpGet: (request, options) => probeNet.http(request, options),
  };
}

function nodeFacts(
  { settings, store, rules, cluster }: ExecuteParts,
  { files, limits }: { readonly files: PodHost; readonly limits: ExecuteDeps["node"]["limits"] },
): ExecuteDeps["node"] {
  const { options, machine, owner } = settings;
  const { rootDir, podLogsDir } = options;
  return {
    paths: { rootDir, podLogsDir, containerLogsDir: settings.containerLogsDir },
    limits,
    runtimeName: settings.runtimeName,
    // Read at each use: the node's addresses change while the agent runs.
    get hostIps() {
      return machine.addresses;
    },
    allocatable: () => rules.resources().allocatable,
    extraMaskedPaths: thermalPaths(files),
    hasRecursiveReadOnly: (pod) =>
      rules.hasRecursiveReadOnly(cluster === undefined ? "" : cluster.facts.knownHandlerOf(pod)),
    hasSelinux: hasSelinux(),
    security: () => store.current,
    seccompDefault: options.seccompDefault || options.seccompDefaultFlag,
    ...(owner === undefined ? {} : { owner }),
    dns: () => {
      const { resolvConf, clusterDNS: clusterDns, clusterDomain } = store.current;
      const text = resolvConf === "" ? undefined : files.readSmall(resolvConf);
      return { resolvConf: text, hostIps: machine.addresses, clusterDns, clusterDomain };
    },
    hostsFile: () => files.readSmall("/etc/hosts"),
  };
}
