import { X509Certificate } from "node:crypto";
import { mkdir, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Abortable } from "../../lib/abort.ts";
import { readIfExists, writeAtomic } from "../../lib/atomic-file.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { CertStore } from "./cert-store.ts";
import { newKey } from "./certificates.ts";
import type { ClientConfig, Material } from "./client-config.ts";
import { type CertificateSpec, requestCertificate } from "./csr.ts";
import { loadKubeconfig } from "./kubeconfig.ts";
import type { KubeApi } from "./port.ts";

/** An hour, as in Kubernetes: an administrator may have to approve. */
const APPROVAL_LIMIT_MS = 60 * 60_000;
const TEMPORARY_KEY = "kubelet-client.key.tmp";

/** The client certificate of a node. */
export function clientCertificate(nodeName: string): CertificateSpec {
  return {
    signer: "kubernetes.io/kube-apiserver-client-kubelet",
    subject: { commonName: `system:node:${nodeName}`, organizations: ["system:nodes"] },
  };
}

/** True when the kubeconfig exists and can be read, and its client certificate (if it has one) is valid now. */
export async function isKubeconfigUsable(
  path: string,
  options: Abortable & { readonly clock: Clock },
): Promise<boolean> {
  try {
    const { identity } = await loadKubeconfig(path, options);
    if (identity.certificate === undefined) return true;
    const { validTo } = new X509Certificate(await materialText(identity.certificate));
    return Date.parse(validTo) > options.clock.now().wall;
  } catch {
    options.signal.throwIfAborted();
    return false;
  }
}

/** Reads a material. */
export async function materialText(material: Material): Promise<string> {
  return material.kind === "data" ? material.pem : readFile(material.path, "utf8");
}

/** Writes the kubeconfig of a bootstrapped node: server and authority as in `config`, the certificate by its link. */
export async function writeNodeKubeconfig(path: string, config: ClientConfig, certificatePath: string): Promise<void> {
  const { authority } = config;
  const cluster = {
    server: config.servers[0],
    ...(authority?.kind === "file" && { "certificate-authority": authority.path }),
    ...(authority?.kind === "data" && { "certificate-authority-data": Buffer.from(authority.pem).toString("base64") }),
    ...(config.isInsecure && { "insecure-skip-tls-verify": true }),
    ...(config.serverName !== undefined && { "tls-server-name": config.serverName }),
    ...(config.proxyUrl !== undefined && { "proxy-url": config.proxyUrl }),
  };
  const user = { "client-certificate": certificatePath, "client-key": certificatePath };
  const document = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default-cluster", cluster }],
    users: [{ name: "default-auth", user }],
    contexts: [
      { name: "default-context", context: { cluster: "default-cluster", user: "default-auth", namespace: "default" } },
    ],
    "current-context": "default-context",
  };
  // JSON is YAML, and needs no library to write.
  await writeAtomic(path, `${JSON.stringify(document, undefined, 2)}\n`, { mode: 0o600 });
}

export interface BootstrapDeps {
  /** A client with the bootstrap credentials. */
  readonly api: Pick<KubeApi, "create" | "get" | "list" | "watch">;
  readonly store: CertStore;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface BootstrapOptions extends Abortable {
  readonly nodeName: string;
  /** Directory of the certificates and, until there is one, of the key. */
  readonly directory: string;
  readonly kubeconfig: string;
  /** The bootstrap kubeconfig, as it was read. */
  readonly config: ClientConfig;
}

/**
 * Gets the first client certificate and writes the kubeconfig. May be repeated after a crash: the key is persisted, so
 * that the earlier request is found again. Rejects with `SigningError` if it is denied.
 */
export async function bootstrap(deps: BootstrapDeps, options: BootstrapOptions): Promise<void> {
  const { signal, directory } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const keyPath = join(directory, TEMPORARY_KEY);
  const key = await keptKey(keyPath);
  deps.log.info("Requesting first client certificate", { node: options.nodeName });
  const request = { signal, key, limitMs: APPROVAL_LIMIT_MS, name: "stable" } as const;
  const certificate = await requestCertificate(deps, clientCertificate(options.nodeName), request);
  await deps.store.save(certificate, key);
  await writeNodeKubeconfig(options.kubeconfig, options.config, deps.store.currentPath);
  // Otherwise the next bootstrap would reuse it.
  await unlink(keyPath).catch(() => undefined);
}

async function keptKey(path: string): Promise<string> {
  const kept = await readIfExists(path);
  if (kept?.includes("PRIVATE KEY")) return kept;
  const key = newKey();
  await writeAtomic(path, key, { mode: 0o600 });
  return key;
}
