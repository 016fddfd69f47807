import type { AgentOptions, agentOptions, OptionStore } from "../../config/index.ts";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { fixed, select } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { gitVersion } from "../../lib/version.ts";
import { loadAuthFile } from "./auth-file.ts";
import { bootstrap, clientCertificate, isKubeconfigUsable, materialText, writeNodeKubeconfig } from "./bootstrap.ts";
import { CertStore } from "./cert-store.ts";
import type { ClientConfig, Identity } from "./client-config.ts";
import { createKubeClients, type KubeClients } from "./clients.ts";
import { loadKubeconfig } from "./kubeconfig.ts";
import { type CertificateFacts, CertificateRotation } from "./rotation.ts";

/** The rate limit if the configured one is 0, as in Kubernetes. */
const LEAST_QPS = 5;

/** The clients of the API server and their certificate. */
export interface ApiConnection {
  readonly clients: KubeClients;
  /** Rotates the client certificate; missing if the agent does not own it. */
  readonly rotate?: (signal: AbortSignal) => Promise<void>;
  /** Facts about that certificate, for metrics. */
  readonly certificate?: () => CertificateFacts;
}

export interface ConnectDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly store: OptionStore<typeof agentOptions>;
}

/**
 * Reads the kubeconfig, requests the first certificate if there is none, and builds the clients. Undefined without an
 * API server. Rejects with a coded error if the configuration is unusable; an unavailable server is fine.
 */
export async function connectApi(
  deps: ConnectDeps,
  nodeName: string,
  { signal }: Abortable,
): Promise<ApiConnection | undefined> {
  const options = deps.store.current;
  if (options.kubeconfig === "" && options.apiServers.length === 0) return undefined;
  const certificates = new CertStore(deps.clock, { directory: options.certDir, prefix: "kubelet-client" });
  const rotates = options.rotateCertificates && options.kubeconfig !== "";
  await bootstrapIfNeeded(deps, { nodeName, certificates, rotates }, { signal });
  const found = await clientConfig(options, { clock: deps.clock, signal });
  const own = rotates ? await ownIdentity(found, certificates, deps.clock) : undefined;
  const clients = clientsOf(deps, own === undefined ? found : { ...found, identity: own.identity });
  const rotation =
    own && (await clientRotation(deps, { nodeName, certificates, clients, isForeign: own.isForeign }, { signal }));
  return { clients, ...rotation };
}

/**
 * Writes the kubeconfig from the bootstrap kubeconfig if there is no usable one. If certificates are rotated it only
 * refers to the certificate that the rotation will request, so that nothing waits for the API server.
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
 * The identity whose certificate the agent rotates: that of the store. A pair that only the kubeconfig holds is copied
 * there, to be replaced at once. Undefined without a certificate.
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

/** Requests with the certificate that is to be replaced; once that has expired, with the bootstrap credentials. */
async function clientRotation(
  deps: ConnectDeps,
  { clients, certificates, nodeName, isForeign }: RotationParts,
  { signal }: Abortable,
): Promise<Required<Pick<ApiConnection, "rotate" | "certificate">>> {
  const { clock, log } = deps;
  const { bootstrapKubeconfig: path } = deps.store.current;
  // Tools that join a node remove this file afterwards and leave the flag.
  const config = path === "" ? undefined : await loadKubeconfig(path, { signal, clock }).catch(() => undefined);
  const first = config && clientsOf(deps, config);
  const rotation: CertificateRotation = new CertificateRotation(
    {
      store: certificates,
      clock,
      log,
      api: () => {
        const { expiresAt = 0 } = rotation.facts;
        return first !== undefined && clock.now().wall >= expiresAt ? first.calls : clients.calls;
      },
    },
    {
      spec: fixed(clientCertificate(nodeName)),
      isForeign,
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
