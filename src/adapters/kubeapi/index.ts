export { errorOfAnswer } from "./api-error.ts";
export { loadAuthFile } from "./auth-file.ts";
export { bootstrap, clientCertificate, isKubeconfigUsable, materialText, writeNodeKubeconfig } from "./bootstrap.ts";
export { CertStore, CertStoreError, type CertStoreOptions, type StoredPair } from "./cert-store.ts";
export { certificate, newKey } from "./certificates.ts";
export { type ClientConfig, type Identity, KubeconfigError } from "./client-config.ts";
export { createKubeClients, type KubeClients, type KubeClientsOptions } from "./clients.ts";
export { type ApiConnection, type ConnectDeps, connectApi } from "./connect.ts";
export { type CertificateSpec, requestCertificate, SigningError } from "./csr.ts";
export { type KubeconfigOptions, loadKubeconfig, parseKubeconfig } from "./kubeconfig.ts";
export {
  ApiError,
  type ApiErrorCode,
  type CallOptions,
  type Deletion,
  type KubeApi,
  type KubeObject,
  type ListQuery,
  type NewObject,
  type ObjectList,
  type ObjectRef,
  type Patch,
  type RawAnswer,
  type RawRequest,
  type Selection,
  type Update,
  type WatchEvent,
  type WatchQuery,
} from "./port.ts";
export { Reflector, type ReflectorOptions } from "./reflector.ts";
export type { ObjectChange } from "./reflector-store.ts";
export {
  ACCESS_REVIEWS,
  apiVersionOf,
  CONFIG_MAPS,
  CSI_DRIVERS,
  CSI_NODES,
  type DeviceClaim,
  type DeviceSlice,
  EVENTS,
  LEASES,
  NODES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  POD_CERTIFICATE_REQUESTS,
  PODS,
  type PodCertificateRequest,
  pathOf,
  RESOURCE_CLAIMS,
  RESOURCE_SLICES,
  type Resource,
  RUNTIME_CLASSES,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
  SIGNING_REQUESTS,
  TOKEN_REVIEWS,
  TRUST_BUNDLES,
  type TrustBundle,
  VOLUME_ATTACHMENTS,
} from "./resources.ts";
export { type CertificateFacts, CertificateRotation, rotationTime, whyReplace } from "./rotation.ts";
export { type StubRequest, stubRequest } from "./stub-request.ts";
export type { RequestAnswer } from "./transport.ts";
export {
  CONTROLLER_REVISIONS,
  CRON_JOBS,
  DAEMON_SETS,
  DEPLOYMENTS,
  ENDPOINT_SLICES,
  ENDPOINTS,
  JOBS,
  NAMESPACES,
  NEW_EVENTS,
  PRIORITY_CLASSES,
  REPLICA_SETS,
  STATEFUL_SETS,
  STORAGE_CLASSES,
} from "./workloads.ts";
