import type {
  CertificateSigningRequest,
  ConfigMap,
  CSIDriver,
  CSINode,
  Event,
  Lease,
  Node,
  ObjectMeta,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  RuntimeClass,
  Secret,
  Service,
  ServiceAccount,
  SubjectAccessReview,
  TokenReview,
  VolumeAttachment,
} from "../../model/generated/types.ts";

/** Where a kind lives in the API; `T` is what its objects are. */
export interface Resource<T> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly isNamespaced: boolean;
  /** Never set: it only carries the type. */
  readonly object?: T;
}

type Place = readonly [group: string, version: string, plural: string];

export function namespaced<T>(kind: string, [group, version, plural]: Place): Resource<T> {
  return { group, version, plural, kind, isNamespaced: true };
}

export function clusterWide<T>(kind: string, [group, version, plural]: Place): Resource<T> {
  return { group, version, plural, kind, isNamespaced: false };
}

export const PODS = namespaced<Pod>("Pod", ["", "v1", "pods"]);
export const NODES = clusterWide<Node>("Node", ["", "v1", "nodes"]);
export const CONFIG_MAPS = namespaced<ConfigMap>("ConfigMap", ["", "v1", "configmaps"]);
export const SECRETS = namespaced<Secret>("Secret", ["", "v1", "secrets"]);
export const SERVICES = namespaced<Service>("Service", ["", "v1", "services"]);
export const SERVICE_ACCOUNTS = namespaced<ServiceAccount>("ServiceAccount", ["", "v1", "serviceaccounts"]);
export const EVENTS = namespaced<Event>("Event", ["", "v1", "events"]);
export const PERSISTENT_VOLUME_CLAIMS = namespaced<PersistentVolumeClaim>("PersistentVolumeClaim", [
  "",
  "v1",
  "persistentvolumeclaims",
]);
export const PERSISTENT_VOLUMES = clusterWide<PersistentVolume>("PersistentVolume", ["", "v1", "persistentvolumes"]);
export const LEASES = namespaced<Lease>("Lease", ["coordination.k8s.io", "v1", "leases"]);
export const RUNTIME_CLASSES = clusterWide<RuntimeClass>("RuntimeClass", ["node.k8s.io", "v1", "runtimeclasses"]);
export const CSI_NODES = clusterWide<CSINode>("CSINode", ["storage.k8s.io", "v1", "csinodes"]);
export const CSI_DRIVERS = clusterWide<CSIDriver>("CSIDriver", ["storage.k8s.io", "v1", "csidrivers"]);
export const VOLUME_ATTACHMENTS = clusterWide<VolumeAttachment>("VolumeAttachment", [
  "storage.k8s.io",
  "v1",
  "volumeattachments",
]);
export const SIGNING_REQUESTS = clusterWide<CertificateSigningRequest>("CertificateSigningRequest", [
  "certificates.k8s.io",
  "v1",
  "certificatesigningrequests",
]);
export const TOKEN_REVIEWS = clusterWide<TokenReview>("TokenReview", ["authentication.k8s.io", "v1", "tokenreviews"]);
export const ACCESS_REVIEWS = clusterWide<SubjectAccessReview>("SubjectAccessReview", [
  "authorization.k8s.io",
  "v1",
  "subjectaccessreviews",
]);

/** Certificates that the cluster trusts; written by hand, because the stable schemas do not have the kind yet. */
export interface TrustBundle {
  readonly metadata: ObjectMeta;
  readonly spec: { readonly signerName?: string; readonly trustBundle: string };
}

/** In the versions of the API that have them, the newest first. No server has all. */
export const TRUST_BUNDLES = [trustBundles("v1beta1"), trustBundles("v1alpha1")] as const;

function trustBundles(version: string): Resource<TrustBundle> {
  return clusterWide<TrustBundle>("ClusterTrustBundle", ["certificates.k8s.io", version, "clustertrustbundles"]);
}

/** `v1` or `group/version`. */
export function apiVersionOf({ group, version }: Resource<unknown>): string {
  return group === "" ? version : `${group}/${version}`;
}

/** The path of a collection, an object (with `name`) or a sub-resource. Names are escaped. */
export function pathOf(
  resource: Resource<unknown>,
  at: { readonly namespace?: string; readonly name?: string; readonly subresource?: string },
): string {
  const parts = resource.group === "" ? ["api", resource.version] : ["apis", resource.group, resource.version];
  if (resource.isNamespaced && at.namespace !== undefined) parts.push("namespaces", at.namespace);
  parts.push(resource.plural);
  if (at.name !== undefined) parts.push(at.name);
  if (at.subresource !== undefined) parts.push(at.subresource);
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

/** A claim for devices, as far as a node reads it; written by hand, because it needs a fraction of the schema. */
export interface DeviceClaim {
  readonly metadata: ObjectMeta;
  readonly status?: {
    readonly allocation?: {
      readonly devices?: { readonly results?: readonly { readonly driver: string }[] };
    };
    readonly reservedFor?: readonly {
      readonly apiGroup?: string;
      readonly resource: string;
      readonly name: string;
      readonly uid: string;
    }[];
  };
}

/** Devices that a driver publishes, as far as a node reads it. */
export interface DeviceSlice {
  readonly metadata: ObjectMeta;
  readonly spec: { readonly driver: string };
}

export const RESOURCE_CLAIMS = namespaced<DeviceClaim>("ResourceClaim", ["resource.k8s.io", "v1", "resourceclaims"]);
export const RESOURCE_SLICES = clusterWide<DeviceSlice>("ResourceSlice", ["resource.k8s.io", "v1", "resourceslices"]);

/** A request for a certificate of a pod; written by hand, because the stable schemas do not have the kind yet. */
export interface PodCertificateRequest {
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly signerName: string;
    readonly podName: string;
    readonly podUID: string;
    readonly serviceAccountName: string;
    readonly serviceAccountUID: string;
    readonly nodeName: string;
    readonly nodeUID: string;
    readonly maxExpirationSeconds?: number;
    /** PKCS #10, DER, as base64. */
    readonly stubPKCS10Request: string;
    readonly unverifiedUserAnnotations?: Readonly<Record<string, string>>;
  };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly reason?: string; readonly message?: string }[];
    readonly certificateChain?: string;
    readonly beginRefreshAt?: string;
    readonly notAfter?: string;
  };
}

export const POD_CERTIFICATE_REQUESTS = namespaced<PodCertificateRequest>("PodCertificateRequest", [
  "certificates.k8s.io",
  "v1beta1",
  "podcertificaterequests",
]);
