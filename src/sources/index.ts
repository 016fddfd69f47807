export { ApiClaims } from "./api-claims.ts";
export { ApiFacts } from "./api-facts.ts";
export { ApiObjects } from "./api-objects.ts";
export { ApiPods } from "./api-pods.ts";
export { ApiTokens } from "./api-tokens.ts";
export { ApiTrustBundles } from "./api-trust-bundles.ts";
export { LOCAL_SOURCES, localSources } from "./compose.ts";
export { type CertificateSources, composePodCertificates } from "./compose-pod-certificates.ts";
export { type DecodedManifest, decodeManifest, type ManifestProblem } from "./decode.ts";
export { FileSource, type FileSourceDeps, type FileSourceOptions } from "./file-source.ts";
export { LayeredObjects } from "./layered-objects.ts";
export type { FileFacts, ManifestFiles } from "./manifest-file.ts";
export { ObjectStore } from "./object-store.ts";
export { OfflineStart } from "./offline-start.ts";
export type { WatchChange } from "./pending-changes.ts";
export { pollTimes } from "./poll-times.ts";
export type { DocumentParser, Snapshot, SourceObject, SourcePod, SourceProblem } from "./snapshot.ts";
export {
  type FetchManifest,
  type ManifestAnswer,
  type RequestHeaders,
  UrlSource,
  type UrlSourceDeps,
  type UrlSourceOptions,
} from "./url-source.ts";
