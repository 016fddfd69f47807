import { PodHost } from "../adapters/host/pod-host.ts";
import { probeNet } from "../adapters/net/probe-net.ts";
import type { ImagePort } from "../adapters/runtime/port.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import { composePuller, type ImagePuller } from "../images/index.ts";
import type { ObjectSource } from "../model/object-source.ts";
import type { NodeRules } from "../node/index.ts";
import { type ExecuteDeps, nodeFacts, UserRanges } from "../pods/index.ts";
import { composeResources } from "../resources/index.ts";
import type { Topology } from "../topology/index.ts";
import type { Cluster } from "./cluster.ts";
import type { KubeletDeps, KubeletSettings } from "./kubelet.ts";

/** What the executors of the ring are built from. */
export interface ExecuteParts {
  readonly deps: KubeletDeps;
  readonly settings: KubeletSettings;
  readonly store: OptionStore<typeof agentOptions>;
  readonly rules: NodeRules;
  readonly cluster: Cluster | undefined;
  /** ConfigMaps, Secrets and what else pods refer to. */
  readonly objects: ObjectSource;
  readonly signal: AbortSignal;
  /** Records an event about the node. */
  readonly event: (type: "Normal" | "Warning", reason: string, message: string) => void;
}

/** Everything that the executors act through. */
export function composeExecute(
  parts: ExecuteParts,
  ring: Pick<ExecuteDeps, "runtime" | "volumes" | "claims" | "contributors" | "resourceHealth"> & {
    readonly images: ImagePort;
    readonly topology: Topology;
  },
): ExecuteDeps & { readonly images: ImagePuller } {
  const { deps, settings, store, cluster } = parts;
  const { clock, log } = deps;
  const files = new PodHost(deps.host);
  const { cgroups, limits } = composeResources({ ...parts, ...ring.topology, options: () => store.current });
  const { images, topology: _topology, ...rest } = ring;
  return {
    ...rest,
    files,
    clock,
    log,
    cgroups,
    images: composePuller(
      { ...deps, images, store, objects: cluster && parts.objects, tokens: cluster?.tokens },
      parts.signal,
    ),
    objects: parts.objects,
    ...(cluster && { cluster: cluster.facts }),
    users: new UserRanges(files, {
      rootDir: settings.options.rootDir,
      pool: settings.userPool,
      idsPerPod: () => store.current.idsPerPod,
    }),
    node: nodeFacts(
      {
        ...parts,
        ...settings,
        files,
        limits,
        options: () => store.current,
        handlerOf: (pod) => (cluster === undefined ? "" : cluster.facts.knownHandlerOf(pod)),
      },
      settings,
    ),
    httpGet: (request, options) => probeNet.http(request, options),
  };
}
