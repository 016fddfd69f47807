import { declareCertificateMetrics, rotationMetrics } from "../adapters/kubeapi/certificate-metrics.ts";
import { CertificateRotation, type CertificateSpec, CertStore, type KubeClients } from "../adapters/kubeapi/index.ts";
import { type ServingPair, selfSignedPair } from "../adapters/net/self-signed.ts";
import { TlsFiles } from "../adapters/net/tls-files.ts";
import type { TlsOptions } from "../adapters/net/tls-listener.ts";
import { minTlsVersion, openSslCiphers, openSslGroups } from "../adapters/net/tls-names.ts";
import { fixed, LiveValue, select } from "../lib/live.ts";
import type { Loop } from "../lib/loop.ts";
import type { NodeAddress } from "../model/generated/types.ts";
import type { ServerDeps } from "./compose.ts";

/** TLS of the main port. */
export interface ServingTls {
  readonly tls: () => Promise<TlsOptions>;
  /** Watch the certificate files, and rotate a signed certificate. */
  readonly loops: readonly Loop[];
}

/** The serving certificate: signed by the cluster, from files, or self-signed. */
export function servingTls(deps: ServerDeps): ServingTls {
  const { clock, log, store, nodeName, connection } = deps;
  const { certDir, tlsCipherSuites, tlsCurvePreferences, tlsMinVersion, serverTLSBootstrap } = store.current;
  const isSigned = serverTLSBootstrap && connection !== undefined;
  const pair = new LiveValue<ServingPair | undefined>(undefined);
  const names = select(store.live("tlsCertFile", "tlsPrivateKeyFile", "clientCAFile"), (o) => ({
    ...(isSigned ? { certificate: "", key: "" } : { certificate: o.tlsCertFile, key: o.tlsPrivateKeyFile }),
    clientAuthorities: o.clientCAFile,
  }));
  const files = new TlsFiles({ clock, log, pair }, names);
  const { ciphers, gone } = openSslCiphers(tlsCipherSuites);
  if (gone.length > 0) log.warn("Ignored unsupported cipher suites", { suites: gone.join(" ") });
  const certificates = new CertStore(clock, { directory: certDir, prefix: "kubelet-server" });
  const inUse = isSigned ? rotationMetrics(deps.metrics, clock) : undefined;
  const tls = async (): Promise<TlsOptions> => {
    if (isSigned) {
      const stored = await certificates.load();
      if (stored !== undefined) inUse?.(stored);
      pair.set(stored);
    }
    if (!isSigned && names.current.certificate === "")
      pair.set(await selfSignedPair(certDir, nodeName, clock.now().wall));
    await files.load();
    const { material } = files;
    return { material, minVersion: minTlsVersion(tlsMinVersion), ciphers, groups: openSslGroups(tlsCurvePreferences) };
  };
  const watch: Loop = { name: "certificate files", run: (signal) => files.run({ signal }) };
  if (!isSigned) return { tls, loops: [watch] };
  const rotation = servingRotation(deps, certificates, (next) => {
    inUse?.(next);
    pair.set(next);
  });
  declareCertificateMetrics(deps.metrics, clock, { kind: "server", facts: () => rotation.facts });
  return { tls, loops: [watch, { name: "serving certificate", run: (signal) => rotation.run({ signal }) }] };
}

function servingRotation(
  { clock, log, nodeName, connection }: ServerDeps,
  store: CertStore,
  onRotated: (pair: ServingPair & { readonly notBefore: number }) => void,
): CertificateRotation {
  const api = (): KubeClients["calls"] => {
    if (connection === undefined) throw new Error("request serving certificate: there is no API server");
    return connection.clients.calls;
  };
  const spec = select(connection?.addresses ?? fixed<readonly NodeAddress[]>([]), (addresses) =>
    certificateFor(nodeName, addresses),
  );
  return new CertificateRotation({ api, store, clock, log }, { spec, onRotated });
}

/** The names of the serving certificate; undefined until the node has an address, as in Kubernetes. */
function certificateFor(nodeName: string, addresses: readonly NodeAddress[]): CertificateSpec | undefined {
  const of = (isIp: boolean): string[] =>
    [...new Set(addresses.filter(({ type }) => type.endsWith("IP") === isIp).map(({ address }) => address))].sort();
  if (of(true).length === 0) return undefined;
  return {
    signer: "kubernetes.io/kubelet-serving",
    subject: { commonName: `system:node:${nodeName}`, organizations: ["system:nodes"] },
    dnsNames: of(false),
    addresses: of(true),
  };
}
