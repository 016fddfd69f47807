import type { Abortable } from "../../lib/abort.ts";
import { readEntries } from "../../model/env-objects.ts";
import type { ClusterTrustBundleProjection, Pod, VolumeProjection } from "../../model/generated/types.ts";
import type { ObjectRef } from "../../model/object-source.ts";
import { declaredContainers } from "../../model/pod-facts.ts";
import { setUpContent, tearDownContent, type VolumeContent } from "../content-volume.ts";
import type { CertificateNeed, VolumeDeps, VolumeFile, VolumeKind, VolumeOfPod } from "../kind.ts";
import { downwardFiles, objectFiles } from "../payload.ts";

type Files = readonly (readonly [string, VolumeFile])[];

/** Several sources in one directory, in memory only. Of two files with one path the later source counts. */
export const projected: VolumeKind = {
  plugin: "kubernetes.io/projected",
  handles: (volume) => volume.projected !== undefined,
  isLive: true,
  isPlain: true,

  references({ pod, volume }) {
    const sources = volume.projected?.sources ?? [];
    return {
      objects: sources.map((source) => refOf(pod, source)).filter((ref) => ref !== undefined),
      trustBundles: sources.map((source) => source.clusterTrustBundle).filter((bundle) => bundle !== undefined),
      podCertificates: certificatesOf({ pod, volume }),
      pod: sources.some((source) => source.downwardAPI !== undefined),
    };
  },

  setUp(of, deps, options) {
    return setUpContent(of, deps, { content: gather(of, deps, options), inMemory: true });
  },

  tearDown: tearDownContent,
};

async function gather(of: VolumeOfPod, deps: VolumeDeps, options: Abortable): Promise<VolumeContent> {
  const { sources = [], defaultMode = 0o644 } = of.volume.projected ?? {};
  const context = { pod: of.pod, deps, defaultMode };
  const certificates = certificatesOf(of).flatMap((need) => certificateFiles(need, context));
  const others = sources.filter(({ podCertificate }) => podCertificate === undefined);
  const parts = await Promise.all(others.map((source) => filesOf(source, context, options)));
  const refreshes = parts.flatMap(({ refreshAt }) => refreshAt ?? []);
  return {
    files: [...parts.flatMap(({ files }) => files), ...certificates],
    ...(refreshes.length === 0 ? {} : { refreshAt: Math.min(...refreshes) }),
  };
}

interface Context {
  readonly pod: Pod;
  readonly deps: VolumeDeps;
  readonly defaultMode: number;
}

async function filesOf(
  source: VolumeProjection,
  context: Context,
  options: Abortable,
): Promise<{ files: Files; refreshAt?: number }> {
  const { pod, deps, defaultMode } = context;
  const ref = refOf(pod, source);
  if (ref !== undefined) {
    const { name, items, optional = false } = source.configMap ?? source.secret ?? {};
    const entries = await readEntries(deps.objects, ref, options);
    if (entries === undefined && !optional) throw new Error(`${ref.kind.toLowerCase()} "${name}" not found`);
    const wanted = { ...(items && { items }), optional, defaultMode };
    return { files: objectFiles(entries ?? new Map(), wanted, ref.kind === "Secret" ? "secret" : "config") };
  }
  if (source.downwardAPI !== undefined) {
    const { allocatable } = deps.node;
    return { files: downwardFiles(source.downwardAPI.items ?? [], { pod, allocatable, defaultMode }) };
  }
  if (source.serviceAccountToken !== undefined) return tokenFile(source.serviceAccountToken, context, options);
  if (source.clusterTrustBundle !== undefined) {
    return { files: await bundleFile(source.clusterTrustBundle, context, options) };
  }
  throw new Error(`projected volume source ${Object.keys(source).join(", ")} is not supported yet`);
}

async function tokenFile(
  source: NonNullable<VolumeProjection["serviceAccountToken"]>,
  { pod, deps, defaultMode }: Context,
  options: Abortable,
): Promise<{ files: Files; refreshAt: number }> {
  if (deps.tokens === undefined) throw new Error("service account token: an API server is required");
  const { audience = "", expirationSeconds = 3600, path } = source;
  const { token, refreshAt } = await deps.tokens.token({ pod, audience, expirationSeconds }, options);
  return { files: [[path, ownFile(token, pod, defaultMode)]], refreshAt };
}

/** A credential is its reader's alone where all containers run as one user; a group gets it by fsGroup. */
function ownFile(text: string, pod: Pod, defaultMode: number): VolumeFile {
  const uid = commonUser(pod);
  const isOwned = uid !== undefined || pod.spec.securityContext?.fsGroup !== undefined;
  return { bytes: Buffer.from(text), mode: isOwned ? 0o600 : defaultMode, ...(uid === undefined ? {} : { uid }) };
}

/** The `podCertificate` sources of a volume. */
function certificatesOf({ pod, volume }: Pick<VolumeOfPod, "pod" | "volume">): readonly CertificateNeed[] {
  return (volume.projected?.sources ?? []).flatMap(({ podCertificate: source }, index) =>
    source === undefined ? [] : [{ pod, volume: volume.name, index, source }],
  );
}

function certificateFiles(need: CertificateNeed, { pod, deps, defaultMode }: Context): Files {
  if (deps.podCertificates === undefined) throw new Error("pod certificate: an API server is required");
  const { keyPem, chainPem } = deps.podCertificates.credential(need);
  const { credentialBundlePath = "", keyPath = "", certificateChainPath = "" } = need.source;
  const files = [
    [credentialBundlePath, keyPem + chainPem],
    [keyPath, keyPem],
    [certificateChainPath, chainPem],
  ] as const;
  return files.flatMap(([path, text]) => (path === "" ? [] : [[path, ownFile(text, pod, defaultMode)] as const]));
}

/** The user that every container runs as, if that is said. */
function commonUser(pod: Pod): number | undefined {
  const all = declaredContainers(pod);
  const users = new Set(all.map((one) => one.securityContext?.runAsUser ?? pod.spec.securityContext?.runAsUser));
  return users.size === 1 ? [...users][0] : undefined;
}

async function bundleFile(
  source: ClusterTrustBundleProjection,
  { deps, defaultMode }: Context,
  options: Abortable,
): Promise<Files> {
  if (deps.trustBundles === undefined) throw new Error("cluster trust bundle: an API server is required");
  const bundles = await deps.trustBundles.bundles(source, options);
  const which = source.name === undefined ? `signer "${source.signerName}"` : `"${source.name}"`;
  if (bundles === undefined && source.optional !== true) throw new Error(`clustertrustbundle ${which} not found`);
  // One certificate once, in an order that does not depend on where it came from.
  const certificates = (bundles ?? []).flatMap((pem) => pem.match(CERTIFICATE) ?? []);
  const text = [...new Set(certificates)].sort().map((pem) => `${pem}\n`);
  return [[source.path, { bytes: Buffer.from(text.join("")), mode: defaultMode }]];
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

function refOf(pod: Pod, { configMap, secret }: VolumeProjection): ObjectRef<"ConfigMap" | "Secret"> | undefined {
  const source = configMap ?? secret;
  if (source === undefined) return undefined;
  const kind = configMap === undefined ? "Secret" : "ConfigMap";
  return { kind, namespace: pod.metadata.namespace ?? "", name: source.name ?? "" };
}
