import { ownValue } from "../lib/own-value.ts";
import type { ContainerImage, Node, NodeAddress, NodeCondition, NodeStatus, Taint } from "../model/generated/types.ts";
import { ARCH_LABEL, HOSTNAME_LABEL, OS_LABEL } from "../model/labels.ts";
import type { NodeResources } from "./capacity.ts";

/** The facts of the node that do not change while the agent runs. */
export interface NodeIdentity {
  readonly name: string;
  /** Go's name: `amd64`. */
  readonly architecture: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly providerId: string;
  readonly isExternalCloud: boolean;
  readonly nodeIp: string;
  /** `enableControllerAttachDetach`. */
  readonly controllerAttaches: boolean;
}

/** The facts that are gathered for each status. */
export interface NodeStatusFacts {
  readonly addresses: readonly NodeAddress[];
  readonly resources: NodeResources;
  readonly conditions: readonly NodeCondition[];
  readonly port: number;
  readonly images: readonly ContainerImage[];
  readonly info: {
    readonly machineId: string;
    readonly systemUuid: string;
    readonly bootId: string;
    readonly kernel: string;
    readonly osImage: string;
    /** `containerd://1.6.20`, or `Unknown`. */
    readonly runtime: string;
    readonly kubeletVersion: string;
    readonly swapBytes: number;
  };
  readonly handlers: readonly {
    readonly name: string;
    readonly recursiveReadOnlyMounts: boolean;
    readonly userNamespaces: boolean;
  }[];
  /** Undefined if the runtime does not report it. */
  readonly supplementalGroupsPolicy: boolean | undefined;
  readonly declaredFeatures: readonly string[];
  /** Attachable volumes that are mounted or desired; undefined while unknown. */
  readonly volumesInUse?: readonly string[];
}

const ATTACH_ANNOTATION = "volumes.kubernetes.io/controller-managed-attach-detach";
const PROVIDED_IP_ANNOTATION = "alpha.kubernetes.io/provided-node-ip";
const UNINITIALIZED: Taint = {
  key: "node.cloudprovider.kubernetes.io/uninitialized",
  value: "true",
  effect: "NoSchedule",
};

/** Returns the object that the node is registered with. Pure. */
export function initialNode(identity: NodeIdentity, status: NodeStatus): Node {
  const { name, taints, isExternalCloud, providerId } = identity;
  const all = isExternalCloud ? [...taints, UNINITIALIZED] : taints;
  return {
    metadata: {
      name,
      labels: { ...defaultLabels(identity), ...identity.labels },
      annotations: {
        ...(identity.controllerAttaches && { [ATTACH_ANNOTATION]: "true" }),
        ...providedIp(identity),
      },
    },
    spec: { ...(all.length > 0 && { taints: all }), ...(providerId !== "" && { providerID: providerId }) },
    status,
  };
}

function defaultLabels({ name, architecture }: NodeIdentity): Record<string, string> {
  return {
    [HOSTNAME_LABEL]: name,
    [OS_LABEL]: "linux",
    [ARCH_LABEL]: architecture,
    "beta.kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": architecture,
  };
}

/** Labels that are reconciled on an existing node; others belong to other writers. */
const RECONCILED_LABELS = [
  ...[HOSTNAME_LABEL, OS_LABEL, ARCH_LABEL, "beta.kubernetes.io/os", "beta.kubernetes.io/arch"],
  ...["topology.kubernetes.io/zone", "topology.kubernetes.io/region"],
  ...["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"],
  ...["node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"],
];

/** `--node-ip` for an external cloud controller manager; empty if it only names a family. */
function providedIp({ isExternalCloud, nodeIp }: NodeIdentity): Record<string, string> {
  const ips = nodeIp.split(",").map((ip) => ip.trim());
  const given = ips.filter((ip) => ip !== "" && ip !== "0.0.0.0" && ip !== "::");
  return isExternalCloud && given.length > 0 ? { [PROVIDED_IP_ANNOTATION]: given.join(",") } : {};
}

/** Labels that are restored while the agent runs: pods that select them would not be scheduled here. */
const KEPT_LABELS = [OS_LABEL, ARCH_LABEL];

/**
 * Returns the part of a status patch below `metadata` that restores the required labels and the provided node IP;
 * undefined if nothing differs. Pure.
 */
export function metadataPatch({ metadata }: Node, identity: NodeIdentity): object | undefined {
  const labels = Object.entries(defaultLabels(identity)).filter(
    ([name, value]) => KEPT_LABELS.includes(name) && ownValue(metadata.labels, name) !== value,
  );
  const ip = providedIp(identity)[PROVIDED_IP_ANNOTATION];
  const hasIp = metadata.annotations?.[PROVIDED_IP_ANNOTATION] === ip;
  if (labels.length === 0 && hasIp) return undefined;
  return {
    ...(labels.length > 0 && { labels: Object.fromEntries(labels) }),
    ...(!hasIp && { annotations: { [PROVIDED_IP_ANNOTATION]: ip ?? null } }),
  };
}

/** Returns the metadata patch for an existing node; undefined if nothing differs. Pure. */
export function reconcileMetadata(existing: Node, wanted: Node): { metadata: object } | undefined {
  const labels: Record<string, string> = {};
  for (const name of RECONCILED_LABELS) {
    const value = ownValue(wanted.metadata.labels, name);
    if (value !== undefined && ownValue(existing.metadata.labels, name) !== value) labels[name] = value;
  }
  const wantedAttach = wanted.metadata.annotations?.[ATTACH_ANNOTATION];
  const annotations =
    existing.metadata.annotations?.[ATTACH_ANNOTATION] === wantedAttach
      ? undefined
      : { [ATTACH_ANNOTATION]: wantedAttach ?? null };
  if (Object.keys(labels).length === 0 && annotations === undefined) return undefined;
  return { metadata: { ...(Object.keys(labels).length > 0 && { labels }), ...(annotations && { annotations }) } };
}

/** Returns the status of the node. Pure. */
export function nodeStatus(facts: NodeStatusFacts, architecture: string): NodeStatus {
  const { info } = facts;
  return {
    addresses: facts.addresses,
    capacity: facts.resources.capacity,
    allocatable: facts.resources.allocatable,
    conditions: facts.conditions,
    daemonEndpoints: { kubeletEndpoint: { Port: facts.port } },
    images: facts.images,
    nodeInfo: {
      machineID: info.machineId,
      systemUUID: info.systemUuid,
      bootID: info.bootId,
      kernelVersion: info.kernel,
      osImage: info.osImage,
      containerRuntimeVersion: info.runtime,
      kubeletVersion: info.kubeletVersion,
      kubeProxyVersion: "",
      operatingSystem: "linux",
      architecture,
      ...(info.swapBytes > 0 && { swap: { capacity: info.swapBytes } }),
    },
    ...(facts.handlers.length > 0 && {
      // Sorted: a runtime may list them in another order each time.
      runtimeHandlers: [...facts.handlers].sort(byName).map(({ name, recursiveReadOnlyMounts, userNamespaces }) => ({
        name,
        features: { recursiveReadOnlyMounts, userNamespaces },
      })),
    }),
    ...(facts.supplementalGroupsPolicy !== undefined && {
      features: { supplementalGroupsPolicy: facts.supplementalGroupsPolicy },
    }),
    declaredFeatures: facts.declaredFeatures,
    ...(facts.volumesInUse && { volumesInUse: facts.volumesInUse }),
  };
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return a.name < b.name ? -1 : Number(a.name > b.name);
}

/** Returns the largest images first, at most five names each. Pure. */
export function nodeImages(
  images: readonly {
    readonly tags: readonly string[];
    readonly digests: readonly string[];
    readonly sizeBytes: number;
  }[],
  most: number,
): readonly ContainerImage[] {
  const sorted = [...images].sort((a, b) => b.sizeBytes - a.sizeBytes);
  return (most < 0 ? sorted : sorted.slice(0, most)).map(({ tags, digests, sizeBytes }) => ({
    names: [...digests, ...tags].slice(0, 5),
    sizeBytes,
  }));
}
