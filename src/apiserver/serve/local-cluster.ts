import { join } from "node:path";
import type { KubeClients } from "../../adapters/kubeapi/index.ts";
import { openLocalPki } from "../../adapters/localpki/local-pki.ts";
import type { KeptListener } from "../../adapters/net/kept-listener.ts";
import type { TlsMaterial } from "../../adapters/net/tls-listener.ts";
import { hostLogFiles, openObjectLog } from "../../adapters/objectlog/index.ts";
import { type Abortable, isAborted } from "../../lib/abort.ts";
import { writeAtomic } from "../../lib/atomic-file.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { LiveValue } from "../../lib/live.ts";
import type { Logger } from "../../lib/log.ts";
import { type Loop, untilAborted } from "../../lib/loop.ts";
import type { OwnServices } from "../bootstrap.ts";
import { ApiServer } from "../compose.ts";
import { AddressRange } from "../kinds/network/address-range.ts";
import { kubeconfigText } from "./kubeconfig.ts";
import { apiPort, apiSocket } from "./listeners.ts";
import { localClients } from "./local-clients.ts";
import { RequestMemory } from "./request-memory.ts";

/** Of the service `kubernetes`. */
const POD_PORT = 443;
/** Certificates are looked at this often, in milliseconds: a clock that was set may have ended them. */
const RENEWAL_MS = 3_600_000;

export interface LocalClusterDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
}

export interface LocalClusterOptions {
  /** Holds the objects, keys and certificates; made if it is missing. */
  readonly directory: string;
  readonly nodeName: string;
  /** The unix socket. */
  readonly socket: string;
  readonly host: string;
  /** 0 leaves only the socket. */
  readonly port: number;
  /** The kubeconfig that is written for root. */
  readonly kubeconfig: string;
  readonly serviceSubnet: string;
  readonly nodePorts: readonly [first: number, last: number];
  /** Where pods reach the API and the DNS server; undefined where they reach neither. */
  readonly ownServices?: OwnServices | undefined;
  /** Where the pods of a source of manifests (`file`, `http`) come from, in words. */
  describeSource(source: string): string;
}

/** The local API on this machine. */
export interface LocalCluster {
  readonly server: ApiServer;
  /** The agent's own clients. */
  readonly clients: KubeClients;
  readonly listeners: { readonly apiSocket: KeptListener; readonly api?: KeptListener };
  readonly loops: readonly Loop[];
}

/**
 * Opens the objects of a directory, makes keys and certificates, and builds the listeners around them. Rejects with
 * `LogError` if the objects cannot be read, and with what the filesystem reports.
 */
export async function openLocalCluster(
  deps: LocalClusterDeps,
  options: LocalClusterOptions,
  abortable: Abortable,
): Promise<LocalCluster> {
  const { clock, log } = deps;
  const { directory, nodeName, host, port, serviceSubnet } = options;
  const names = {
    directory: join(directory, "pki"),
    dnsNames: [
      ...["localhost", nodeName, "kubernetes", "kubernetes.default", "kubernetes.default.svc"],
      "kubernetes.default.svc.cluster.local",
    ],
    addresses: [
      ...new Set(["127.0.0.1", "::1", ...(host === "" ? [] : [host]), new AddressRange(serviceSubnet).at(1)]),
    ],
  };
  let pki = await openLocalPki({ ...names, now: clock.now().wall });
  const server = await ApiServer.open(
    { ...deps, openLog: (content) => openObjectLog({ files: hostLogFiles, log, content }, { directory }) },
    { ...options, signingKey: pki.signingKey, authority: pki.authority },
    abortable,
  );
  const material = new LiveValue<TlsMaterial>({ ...pki.serving, clientAuthorities: pki.authority });
  const podMaterial = new LiveValue<TlsMaterial>({ ...pki.serving, clientAuthorities: "" });
  const writeKubeconfig = async (): Promise<void> => {
    const shown = host.includes(":") ? `[${host}]` : host;
    const text = kubeconfigText({ ...pki, server: `https://${shown}:${port}` });
    await writeAtomic(options.kubeconfig, text, { mode: 0o600 });
  };
  if (port !== 0) await writeKubeconfig();
  const renew = async (): Promise<void> => {
    const next = await openLocalPki({ ...names, now: clock.now().wall });
    if (next.serving.certificate === pki.serving.certificate && next.administrator.key === pki.administrator.key)
      return;
    pki = next;
    material.set({ ...pki.serving, clientAuthorities: pki.authority });
    podMaterial.set({ ...pki.serving, clientAuthorities: "" });
    if (port !== 0) await writeKubeconfig();
    log.info("Renewed certificates of the local API");
  };
  const served = { clock, log, served: server, memory: new RequestMemory() };
  const { ownServices } = options;
  // Pods have tokens; a certificate, and with it the administrator's, is not even asked for there.
  const forPods =
    ownServices && apiPort(served, { host: ownServices.apiAddress, port: POD_PORT, material: podMaterial });
  return {
    server,
    clients: localClients(server, nodeName),
    listeners: {
      apiSocket: apiSocket(served, options.socket),
      ...(port !== 0 && { api: apiPort(served, { host, port, material }) }),
    },
    loops: [
      ...server.loops,
      ...(forPods === undefined
        ? []
        : [{ name: "API for pods", run: (signal: AbortSignal) => forPods.run({ signal }) }]),
      { name: "certificates of the local API", run: (signal) => renewHourly({ clock, log, renew }, { signal }) },
      { name: "local API", run: (signal) => closeAtEnd(server, signal) },
    ],
  };
}

interface Renewal {
  readonly clock: Clock;
  readonly log: Logger;
  renew(): Promise<void>;
}

async function renewHourly({ clock, log, renew }: Renewal, { signal }: Abortable): Promise<void> {
  try {
    for (;;) {
      await clock.sleep(RENEWAL_MS, { signal });
      await renew().catch((error: unknown) =>
        log.warn("Failed to renew certificates of the local API", { error: messageOf(error) }),
      );
    }
  } catch (error) {
    if (!isAborted(error, signal)) throw error;
  }
}

/** The last status of a pod may be written while the others stop: the file is closed when the process ends. */
async function closeAtEnd(server: ApiServer, signal: AbortSignal): Promise<void> {
  await untilAborted(signal);
  await server.close();
}
