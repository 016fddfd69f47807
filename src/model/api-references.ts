import type { Container, EphemeralContainer, Pod, Volume } from "./generated/types.ts";
import { allContainers } from "./pod-facts.ts";

/**
 * What the pod needs from the API server, as `static pods may not reference %s` names it; empty for a pod that may be
 * static. The list is sorted and holds each kind once. Without an API server ConfigMaps and Secrets stand beside the
 * pods and may be referred to.
 */
export function apiReferences(
  pod: Pod,
  options: { hasApiServer: boolean } = { hasApiServer: true },
): readonly string[] {
  const { spec } = pod;
  const found = new Set<string>();
  if (spec.serviceAccountName || spec.serviceAccount) found.add("serviceaccounts");
  if ((spec.imagePullSecrets ?? []).length > 0) found.add("secrets");
  if ((spec.resourceClaims ?? []).length > 0) found.add("resourceclaims");
  const containers = allContainers(pod);
  for (const container of containers) addEnvReferences(container, found);
  for (const volume of spec.volumes ?? []) addVolumeReferences(volume, found);
  const isOurs = (kind: string): boolean => !options.hasApiServer && /^(secrets|configmaps)\b/.test(kind);
  return [...found].filter((kind) => !isOurs(kind)).sort();
}

function addEnvReferences(container: Container | EphemeralContainer, found: Set<string>): void {
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.secretKeyRef !== undefined) found.add("secrets");
    if (valueFrom?.configMapKeyRef !== undefined) found.add("configmaps");
  }
  for (const { secretRef, configMapRef } of container.envFrom ?? []) {
    if (secretRef !== undefined) found.add("secrets");
    if (configMapRef !== undefined) found.add("configmaps");
  }
}

function addVolumeReferences(volume: Volume, found: Set<string>): void {
  if (volume.secret !== undefined) found.add("secrets (via secret volumes)");
  if (volume.configMap !== undefined) found.add("configmaps (via configmap volumes)");
  if (volume.persistentVolumeClaim !== undefined || volume.ephemeral !== undefined) found.add("persistentvolumeclaims");
  if (volume.csi !== undefined) found.add("csidrivers (via CSI volumes)");
  for (const source of volume.projected?.sources ?? []) {
    if (source.secret !== undefined) found.add("secrets (via projected volumes)");
    if (source.configMap !== undefined) found.add("configmaps (via projected volumes)");
    if (source.serviceAccountToken !== undefined) found.add("serviceaccounts (via projected volumes)");
    if (source.clusterTrustBundle !== undefined) found.add("clustertrustbundles");
    if (source.podCertificate !== undefined) found.add("podcertificates");
  }
}
