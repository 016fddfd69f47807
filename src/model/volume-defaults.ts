import type { DownwardAPIVolumeFile, Volume, VolumeProjection } from "./generated/types.ts";

const DEFAULT_MODE = 0o644;
const TOKEN_SECONDS = 3600;

/** The volume with the API defaults; one without a source is an emptyDir. */
export function defaultVolume(volume: Volume): Volume {
  const hasSource = Object.entries(volume).some(([key, value]) => key !== "name" && value !== undefined);
  if (!hasSource) return { ...volume, emptyDir: {} };
  const { hostPath, secret, configMap, downwardAPI, projected } = volume;
  return {
    ...volume,
    ...(hostPath && { hostPath: { ...hostPath, type: hostPath.type ?? "" } }),
    ...(secret && { secret: { ...secret, defaultMode: secret.defaultMode ?? DEFAULT_MODE } }),
    ...(configMap && { configMap: { ...configMap, defaultMode: configMap.defaultMode ?? DEFAULT_MODE } }),
    ...(downwardAPI && {
      downwardAPI: {
        ...downwardAPI,
        defaultMode: downwardAPI.defaultMode ?? DEFAULT_MODE,
        ...(downwardAPI.items && { items: downwardAPI.items.map(defaultFile) }),
      },
    }),
    ...(projected && {
      projected: {
        ...projected,
        defaultMode: projected.defaultMode ?? DEFAULT_MODE,
        ...(projected.sources && { sources: projected.sources.map(defaultProjection) }),
      },
    }),
  };
}

function defaultFile(file: DownwardAPIVolumeFile): DownwardAPIVolumeFile {
  const { fieldRef } = file;
  return fieldRef === undefined
    ? file
    : { ...file, fieldRef: { ...fieldRef, apiVersion: fieldRef.apiVersion || "v1" } };
}

function defaultProjection(source: VolumeProjection): VolumeProjection {
  const { serviceAccountToken: token, downwardAPI } = source;
  return {
    ...source,
    ...(token && {
      serviceAccountToken: { ...token, expirationSeconds: token.expirationSeconds ?? TOKEN_SECONDS },
    }),
    ...(downwardAPI?.items && { downwardAPI: { ...downwardAPI, items: downwardAPI.items.map(defaultFile) } }),
  };
}
