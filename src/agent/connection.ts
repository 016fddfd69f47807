import { addressesOf } from "../adapters/host/node-facts.ts";
import {
  bootstrap,
  type CertificateFacts,
  CertificateRotation,
  CertStore,
  type ClientConfig,
  clientWish,
  createKubeClients,
  type Identity,
  isKubeconfigUsable,
  type KubeClients,
  loadAuthFile,
  loadKubeconfig,
  materialText,
  writeNodeKubeconfig,
} from "../adapters/kubeapi/index.ts";
import type { AgentOptions, agentOptions, OptionStore } from "../config/index.ts";
import { ConfigurationError } from "../config/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { fixed, select } from "../lib/live.ts";
import type { Logger } from "../lib/log.ts";
import { gitVersion } from "../lib/version.ts";
import type { NodeAddress } from "../model/generated/types.ts";
import { nodeAddresses } from "../node/index.ts";

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
  const { nodeName } = machine;
  const certificates = new CertStore(deps.clock, { directory: options.certDir, prefix: "kubelet-client" });
  const rotates = options.rotateCertificates && options.kubeconfig !== "";
  await bootstrapIfNeeded(deps, { nodeName, certificates, rotates }, { signal });
  const found = await clientConfig(options, { clock: deps.clock, signal });
  const own = rotates ? await ownIdentity(found, certificates, deps.clock) : undefined;
  const clients = clientsOf(deps, own === undefined ? found : { ...found, identity: own.identity });
  const rotation =
    own && (await clientRotation(deps, { nodeName, certificates, clients, isForeign: own.isForeign }, { signal }));
  return {
    clients,
    addresses: await addressesOfNode(options, machine),
    ...rotation,
  };
}

/**
 * Without a usable kubeconfig one is made from the bootstrap kubeconfig. Where certificates are rotated it only names the
 * certificate that the rotation will get, so that nothing waits for the API server; else the certificate is waited for.
 */
async function bootstrapIfNeeded(
  deps: ConnectDeps,
  parts: { readonly nodeName: string; readonly certificates: CertStore; readonly rotates: boolean },
  { signal }: Abortable,
): Promise<void> {
  const { bootstrapKubeconfig, kubeconfig } = deps.store.current;
  const { clock } = deps;
  if (bootstrapKubeconfig === "" || (await isKubeconfigUsable(kubeconfig, { signal, clock }))) return;
  if (!parts.rotates) return firstCertificate(deps, parts, { signal });
  const config = await loadKubeconfig(bootstrapKubeconfig, { signal, clock });
  await writeNodeKubeconfig(kubeconfig, config, parts.certificates.currentPath);
}

/**
 * The identity whose certificate is ours to renew: that of the store. A pair that only the kubeconfig has is put there,
 * to be replaced by one of our own. Undefined where there is no certificate to begin with.
 */
async function ownIdentity(
  { identity }: ClientConfig,
  store: CertStore,
  clock: Clock,
): Promise<{ readonly identity: Identity; readonly isForeign: boolean } | undefined> {
  const { certificate, key } = identity;
  if (certificate === undefined || key === undefined) return undefined;
  const path = store.currentPath;
  const link = { kind: "file", path } as const;
  const own = { ...identity, certificate: link, key: link };
  if (certificate.kind === "file" && certificate.path === path) return { identity: own, isForeign: false };
  const stored = await store.load();
  if (stored !== undefined && stored.notAfter > clock.now().wall) return { identity: own, isForeign: false };
  await store.save(await materialText(certificate), await materialText(key));
  return { identity: own, isForeign: true };
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

interface RotationParts {
  readonly nodeName: string;
  readonly certificates: CertStore;
  readonly clients: KubeClients;
  readonly isForeign: boolean;
}

/** Asks with the certificate that is to be replaced; without a good one, with the bootstrap credentials. */
async function clientRotation(
  deps: ConnectDeps,
  { clients, certificates, nodeName, isForeign }: RotationParts,
  { signal }: Abortable,
): Promise<Required<Pick<ClusterConnection, "rotate" | "certificate">>> {
  const { clock, log } = deps;
  const { bootstrapKubeconfig: path } = deps.store.current;
  // Tools that join a node remove this file afterwards and leave the flag.
  const config = path === "" ? undefined : await loadKubeconfig(path, { signal, clock }).catch(() => undefined);
  const first = config && clientsOf(deps, config);
  const rotation: CertificateRotation = new CertificateRotation(
    {
      ...{ store: certificates, clock, log },
      api: () => {
        const { expiresAt = 0 } = rotation.facts;
        return first !== undefined && clock.now().wall >= expiresAt ? first.calls : clients.calls;
      },
    },
    {
      ...{ wish: fixed(clientWish(nodeName)), isForeign },
      onRotated: () => {
        clients.refreshCredentials();
        clients.renew();
        first?.renew();
      },
    },
  );
  return {
    rotate: (stop) => rotation.run({ signal: stop }).finally(() => first?.close()),
    certificate: () => rotation.facts,
  };
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
    throw new ConfigurationError("Impossible", messageOf(error));
  }
}
