import {
  ApiError,
  ENDPOINT_SLICES,
  type KubeApi,
  NAMESPACES,
  PRIORITY_CLASSES,
  type Resource,
  SERVICES,
  STORAGE_CLASSES,
} from "../adapters/kubeapi/index.ts";
import type { Abortable } from "../lib/abort.ts";
import type { EndpointSlice, PriorityClass, Service, StorageClass } from "../model/generated/types.ts";
import { SYSTEM_CLUSTER_CRITICAL, SYSTEM_CRITICAL_PRIORITY, SYSTEM_NODE_CRITICAL } from "../model/labels.ts";

/** Namespaces that every cluster has. */
const SYSTEM_NAMESPACES = ["default", "kube-system", "kube-public", "kube-node-lease"];
const NODE_CRITICAL_MORE = 1000;

const CLASSES: readonly PriorityClass[] = [
  {
    metadata: { name: SYSTEM_CLUSTER_CRITICAL },
    value: SYSTEM_CRITICAL_PRIORITY,
    description:
      "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
  },
  {
    metadata: { name: SYSTEM_NODE_CRITICAL },
    value: SYSTEM_CRITICAL_PRIORITY + NODE_CRITICAL_MORE,
    description: "Used for system critical pods that must not be moved from their current node.",
  },
];

/** Makes a directory of the node for each claim, when the first pod uses it. */
const DEFAULT_STORAGE_CLASS: StorageClass = {
  metadata: { name: "standard", annotations: { "storageclass.kubernetes.io/is-default-class": "true" } },
  provisioner: "kubelet-ts/local-directory",
  reclaimPolicy: "Delete",
  volumeBindingMode: "WaitForFirstConsumer",
};

/** Creates what every cluster has, where it is missing. */
export async function bootstrapObjects(api: Pick<KubeApi, "create">, options: Abortable): Promise<void> {
  for (const name of SYSTEM_NAMESPACES)
    await ensure(api, NAMESPACES, { object: { metadata: { name }, spec: {} }, ...options });
  for (const object of CLASSES) await ensure(api, PRIORITY_CLASSES, { object, ...options });
  await ensure(api, STORAGE_CLASSES, { object: DEFAULT_STORAGE_CLASS, ...options });
}

/** Services that the node itself answers, by their addresses. */
export interface OwnServices {
  readonly apiAddress: string;
  readonly dnsAddress: string;
}

interface OwnService {
  readonly namespace: string;
  readonly name: string;
  readonly address: string;
  readonly ports: readonly { readonly name: string; readonly port: number; readonly protocol: string }[];
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * Creates the services that the node itself answers: without a selector, with one endpoint that stays. With another
 * range than before they move; one whose address a user's service has is left out.
 */
export async function bootstrapServices(
  api: Pick<KubeApi, "create" | "get" | "delete">,
  { apiAddress, dnsAddress }: OwnServices,
  options: Abortable,
): Promise<void> {
  const https = { name: "https", port: 443, protocol: "TCP" };
  const dns = [
    { name: "dns", port: 53, protocol: "UDP" },
    { name: "dns-tcp", port: 53, protocol: "TCP" },
  ];
  const all: readonly OwnService[] = [
    {
      namespace: "default",
      name: "kubernetes",
      address: apiAddress,
      ports: [https],
      labels: { component: "apiserver", provider: "kubernetes" },
    },
    {
      namespace: "kube-system",
      name: "kube-dns",
      address: dnsAddress,
      ports: dns,
      labels: { "k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS" },
    },
  ];
  for (const { namespace, name, address, ports, labels } of all) {
    const service: Service = {
      metadata: { name, namespace, labels },
      spec: { type: "ClusterIP", clusterIP: address, ports: ports.map((one) => ({ ...one, targetPort: one.port })) },
    };
    const slice: EndpointSlice = {
      metadata: { name, namespace, labels: { "kubernetes.io/service-name": name } },
      addressType: "IPv4",
      ports,
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
    };
    await removeMoved(api, { namespace, name, address }, options);
    try {
      await ensure(api, SERVICES, { namespace, object: service, ...options });
      await ensure(api, ENDPOINT_SLICES, { namespace, object: slice, ...options });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "Invalid") throw error;
    }
  }
}

async function removeMoved(
  api: Pick<KubeApi, "get" | "delete">,
  { namespace, name, address }: Pick<OwnService, "namespace" | "name" | "address">,
  options: Abortable,
): Promise<void> {
  try {
    const { spec } = await api.get(SERVICES, { namespace, name }, options);
    if (spec?.clusterIP === address) return;
    await api.delete(SERVICES, { namespace, name }, options);
    await api.delete(ENDPOINT_SLICES, { namespace, name }, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "NotFound") throw error;
  }
}

async function ensure<T>(
  api: Pick<KubeApi, "create">,
  resource: Resource<T>,
  {
    object,
    namespace,
    signal,
  }: Abortable & { readonly object: Omit<T, "apiVersion" | "kind">; readonly namespace?: string },
): Promise<void> {
  try {
    await api.create(resource, { object, ...(namespace !== undefined && { namespace }) }, { signal });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "AlreadyExists") throw error;
  }
}
