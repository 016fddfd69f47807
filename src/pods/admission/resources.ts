import type { Container, Pod } from "../../model/generated/types.ts";
import { requestsOf, type Shortage, shortagesOf } from "../../model/node-fit.ts";
import type { AdmissionFacts, Rejection } from "./facts.ts";

export { requestsOf, type Shortage } from "../../model/node-fit.ts";

/**
 * Returns the resources that are insufficient for this pod, in the order of Kubernetes. What it gets by a claim is not
 * counted. A resource that the node does not report may be one of the cluster, but huge pages and what Kubernetes names
 * itself are not: of those it has none.
 */
export function shortages(pod: Pod, { others, node }: AdmissionFacts): readonly Shortage[] {
  const counted = node.claimsExtendedResources === false ? pod : withoutClaimed(pod);
  const missing = Object.keys(requestsOf(counted)).filter((name) => isOfNode(name));
  const allocatable = { ...Object.fromEntries(missing.map((name) => [name, "0"])), ...node.allocatable };
  return shortagesOf(counted, { others, allocatable });
}

function isOfNode(resource: string): boolean {
  return resource.startsWith("hugepages-") || resource.includes("kubernetes.io/");
}

/** The pod without requests for extended resources that the scheduler has claimed for it. */
function withoutClaimed(pod: Pod): Pod {
  const mappings = pod.status?.extendedResourceClaimStatus?.requestMappings ?? [];
  if (mappings.length === 0) return pod;
  const strip = (container: Container): Container => {
    const isClaimed = (resource: string): boolean =>
      mappings.some(({ containerName, resourceName }) => containerName === container.name && resourceName === resource);
    const kept = Object.entries(container.resources?.requests ?? {}).filter(([name]) => !isClaimed(name));
    return { ...container, resources: { ...container.resources, requests: Object.fromEntries(kept) } };
  };
  const { initContainers, containers } = pod.spec;
  const stripped = {
    containers: containers.map(strip),
    ...(initContainers && { initContainers: initContainers.map(strip) }),
  };
  return { ...pod, spec: { ...pod.spec, ...stripped } };
}

/** The rejection for an insufficient resource, with the message of Kubernetes. */
export function shortageProblem({ resource, requested, used, capacity }: Shortage): Rejection {
  const numbers = `requested: ${requested}, used: ${used}, capacity: ${capacity}`;
  return { reason: `OutOf${resource}`, message: `Node didn't have enough resource: ${resource}, ${numbers}` };
}
