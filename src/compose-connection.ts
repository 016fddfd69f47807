import { addressesOf } from "./adapters/host/node-facts.ts";
import {
  bootstrap,
  type CertificateFacts,
  CertificateRotation,
  CertStore,
  type ClientConfig,
  clientWish,
  createKubeClients,
  isKubeconfigUsable,
  type KubeClients,
  loadAuthFile,
  loadKubeconfig,
} from "./adapters/kubeapi/index.ts";
import type { AgentOptions, agentOptions, OptionStore } from "./config/index.ts";
import { ConfigError } from "./config/index.ts";
import type { Abortable } from "./lib/abort.ts";
import type { Clock } from "./lib/clock.ts";
import { messageOf } from "./lib/errors.ts";
import { fixed, select } from "./lib/live.ts";
import type { Logger } from "./lib/log.ts";
import { gitVersion } from "./lib/version.ts";
import type { NodeAddress } from "./model/generated/types.ts";
import { nodeAddresses } from "./node/index.ts";

/** For limits that are switched off by 0, as in Kubernetes. */
const LEAST_QPS = 5;

/** The way to the cluster, and who we are there. */
export interface ClusterConnection {
  readonly clients: KubeClients;
  readonly addresses: readonly NodeAddress[];
  /** Keeps the client certificate fresh; missing where it is not ours to renew. */
  readonly rotate?: (signal: AbortSignal) => Promise<void>;
  /** What is known of that certificate. */
  readonly certificate?: () => CertificateFacts;
}

export interface ConnectDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: OptionStore<typeof agentOptions>;
}

/**
 * Reads the kubeconfig, asks for the first certificate if there is none, and makes the clients. Undefined for an agent
 * that runs alone. Rejects with a coded error when the configuration cannot be used; a server that is away is fine.
 */
export async function connectCluster(
  deps: ConnectDeps,
  machine: { readonly nodeName: string; readonly addresses: readonly string[] },
  { signal }: Abortable,
): Promise<ClusterConnection | undefined> {
  const options = deps.store.current;
  if (options.kubeconfig === "" && options.apiServers.length === 0) return undefined;
  const { clock } = deps;
  const { nodeName } = machine;
  const certificates = new CertStore(clock, { directory: options.certDir, prefix: "kubelet-client" });
  if (options.bootstrapKubeconfig !== "" && !(await isKubeconfigUsable(options.kubeconfig, { signal, clock }))) {
    await firstCertificate(deps, { nodeName, certificates }, { signal });
  }
  const config = await clientConfig(options, { clock, signal });
  const clients = clientsOf(deps, config);
  const path = config.identity.certificate?.kind === "file" ? config.identity.certificate.path : undefined;
  const isOurs = options.rotateCertificates && path === certificates.currentPath;
  const rotation = isOurs ? clientRotation(deps, { nodeName, certificates, clients }) : undefined;
  return {
    clients,
    addresses: await addressesOfNode(options, machine),
    ...(rotation && {
      rotate: (stop: AbortSignal) => rotation.run({ signal: stop }),
      certificate: () => rotation.facts,
    }),
  };
}

async function firstCertificate(
  deps: ConnectDeps,
  { nodeName, certificates }: { readonly nodeName: string; readonly certificates: CertStore },
  { signal }: Abortable,
): Promise<void> {
  const { clock, log, store } = deps;
  const { bootstrapKubeconfig, kubeconfig, certDir } = store.current;
  const config = await loadKubeconfig(bootstrapKubeconfig, { signal, clock });
  const clients = clientsOf(deps, config);
  try {
    const request = { nodeName, directory: certDir, kubeconfig, config, signal };
    await bootstrap({ api: clients.calls, store: certificates, clock, log }, request);
  } finally {
    clients.close();
  }
}

function clientRotation(
  { clock, log }: ConnectDeps,
  parts: { readonly nodeName: string; readonly certificates: CertStore; readonly clients: KubeClients },
): CertificateRotation {
  const { clients, certificates, nodeName } = parts;
  return new CertificateRotation(
    { api: () => clients.calls, store: certificates, clock, log },
    {
      wish: fixed(clientWish(nodeName)),
      onRotated: () => {
        clients.refreshCredentials();
        clients.renew();
      },
    },
  );
}

async function clientConfig(options: AgentOptions, call: Abortable & { readonly clock: Clock }): Promise<ClientConfig> {
  const { kubeconfig, apiServers, authPath } = options;
  if (kubeconfig !== "") return loadKubeconfig(kubeconfig, { ...call, servers: apiServers });
  if (authPath !== "") return loadAuthFile(authPath, apiServers);
  return { servers: apiServers, isInsecure: false, namespace: "default", identity: {} };
}

function clientsOf({ clock, log, store }: ConnectDeps, config: ClientConfig): KubeClients {
  const { nodeStatusUpdateFrequency, nodeLeaseDurationSeconds } = store.current;
  return createKubeClients(
    { clock, log },
    {
      config,
      userAgent: `kubelet/${gitVersion} (linux)`,
      limits: select(store.live("kubeAPIQPS", "kubeAPIBurst", "eventRecordQPS", "eventBurst"), (o) => ({
        calls: { qps: o.kubeAPIQPS || LEAST_QPS, burst: o.kubeAPIBurst || LEAST_QPS * 2 },
        events: { qps: o.eventRecordQPS || LEAST_QPS, burst: o.eventBurst || LEAST_QPS * 2 },
      })),
      heartbeatTimeoutMs: Math.min(nodeStatusUpdateFrequency, nodeLeaseDurationSeconds * 1000),
    },
  );
}

async function addressesOfNode(
  { nodeIP, cloudProvider }: AgentOptions,
  { nodeName, addresses }: { readonly nodeName: string; readonly addresses: readonly string[] },
): Promise<readonly NodeAddress[]> {
  try {
    return nodeAddresses({
      ...{ nodeName, nodeIp: nodeIP, isExternalCloud: cloudProvider === "external", own: addresses },
      resolved: nodeIP === "" ? await addressesOf(nodeName) : [],
    });
  } catch (error) {
    throw new ConfigError("Impossible", messageOf(error));
  }
}
