import { openLocalCluster } from "../apiserver/index.ts";
import type { agentOptions, OptionStore } from "../config/index.ts";
import { composeControllers, type VolumeDirectories } from "../controllers/index.ts";
import type { Abortable } from "../lib/abort.ts";
import { messageOf } from "../lib/errors.ts";
import { determineNodeAddresses, hostIpsOf } from "../node/index.ts";
import type { KubeletSettings } from "./kubelet.ts";
import { openLocalServices, type PodNetwork } from "./local-services.ts";
import type { PrepareDeps } from "./prepare.ts";

/** The local API, or why there is none: the agent runs its manifests without it. */
export type LocalApiOutcome = Pick<KubeletSettings, "connection" | "machine" | "local"> & {
  readonly trouble?: string;
  /** Why services do not work, or not wholly. */
  readonly servicesTrouble?: string | undefined;
};

/** Opens the local API and connects the agent with it as with a cluster. Never rejects but for an abort. */
export async function joinLocalCluster(
  deps: PrepareDeps & { readonly store: OptionStore<typeof agentOptions> },
  { machine, options, network }: KubeletSettings & { readonly network?: PodNetwork | undefined },
  abortable: Abortable,
): Promise<LocalApiOutcome> {
  if (!options.apiserver || options.runOnce) return { machine };
  const { clock, log, host } = deps;
  const random = Math.random;
  const { nodeName } = machine;
  try {
    const describeSource = (source: string): string => {
      const { staticPodPath, staticPodURL } = deps.store.current;
      return source === "http" ? staticPodURL : staticPodPath;
    };
    const services = network && (await openLocalServices({ ...deps, random }, network, abortable));
    const ownServices = services?.addresses;
    const given = { ...clusterOptions(options, nodeName), describeSource, ownServices };
    const cluster = await openLocalCluster({ clock, log, random }, given, abortable);
    const own = (): string[] => host.hostAddresses().map(({ address }) => address);
    const addresses = await determineNodeAddresses(options, { nodeName, own, clock });
    const api = (manager: string) => cluster.server.api(manager);
    const volumes = volumeDirectories(host, `${options.rootDir}/local-volumes`);
    return {
      connection: { clients: cluster.clients, addresses, isLocal: true },
      local: {
        listeners: cluster.listeners,
        attach: (node) => cluster.server.attach(node),
        loops: (signal) => [
          ...composeControllers({ api, clock, log, random, volumes }, signal),
          ...(services?.loops(api("kube-proxy")) ?? []),
          ...cluster.loops,
        ],
      },
      servicesTrouble: services?.trouble,
      machine: {
        ...machine,
        // Read at each use: the addresses change while the agent runs.
        get addresses() {
          return hostIpsOf(addresses.current);
        },
      },
    };
  } catch (error) {
    abortable.signal.throwIfAborted();
    const trouble = messageOf(error);
    log.error("Failed to open the local API, running without it", error, { directory: options.rootDir });
    return { machine, trouble };
  }
}

function clusterOptions(options: KubeletSettings["options"], nodeName: string) {
  const [first = 0, last = 0] = options.serviceNodePortRange.split("-").map(Number);
  return {
    directory: `${options.rootDir}/apiserver`,
    nodeName,
    socket: options.apiserverSocket,
    host: options.apiserverAddress,
    port: options.apiserverPort,
    kubeconfig: options.apiserverKubeconfig,
    serviceSubnet: options.serviceClusterIPRange,
    nodePorts: [first, last] as const,
  };
}

/** Directories of volumes below one that only root may enter; pods get them mounted, whatever user they run as. */
function volumeDirectories(host: PrepareDeps["host"], root: string): VolumeDirectories {
  return {
    root,
    make: async (name) => {
      await host.makeDir(root, 0o700);
      await host.makeDir(`${root}/${name}`, 0o777);
    },
    remove: (name) => host.removeTree(`${root}/${name}`),
  };
}
