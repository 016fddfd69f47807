import type { Container, Pod } from "../../model/generated/types.ts";
import { declaredContainers, isCriticalPod } from "../../model/pod-facts.ts";
import { qosClass } from "../../model/qos.ts";
import { bytesOf, parseResources } from "../../model/resources.ts";

/** What a container's swap follows from. */
export interface SwapFacts {
  /** Bytes of memory that the node has. */
  readonly memoryCapacity: number;
  /** Bytes of swap that the node has for containers; undefined if they get none. */
  readonly swapBytes?: number | undefined;
}

/**
 * Bytes of swap that a container may use: the node's swap in the proportion of its memory request to the node's memory.
 * None for pods that are not burstable or are critical, and for containers whose request is missing or is also their
 * limit: they asked for memory that does not get slow. Pure.
 */
export function swapLimit(pod: Pod, container: Container, facts: SwapFacts): number {
  const { memoryCapacity, swapBytes } = facts;
  const request = requestOf(container);
  if (swapBytes === undefined || !maySwap(pod, container, facts)) return 0;
  if (memoryCapacity <= 0 || request > memoryCapacity) return 0;
  return Math.floor((request / memoryCapacity) * swapBytes);
}

/**
 * Why a resize is infeasible, in the words of Kubernetes: the swap of a container that keeps running follows from its
 * memory request, and is not changed. Pure.
 */
export function swapResizeProblem(desired: Pod, allocated: Pod, facts: SwapFacts): string | undefined {
  const before = new Map(declaredContainers(allocated).map((container) => [container.name, container]));
  const isProblem = declaredContainers(desired).some((container) => {
    const old = before.get(container.name);
    if (old === undefined || requestOf(container) === requestOf(old) || restartsForMemory(old)) return false;
    return maySwap(desired, container, facts) || maySwap(allocated, old, facts);
  });
  return isProblem ? "In-place resize of containers with swap is not supported." : undefined;
}

function maySwap(pod: Pod, container: Container, { swapBytes }: SwapFacts): boolean {
  if (swapBytes === undefined || qosClass(pod) !== "Burstable" || isCriticalPod(pod)) return false;
  const limit = bytesOf(parseResources(container.resources?.limits), "memory") ?? 0;
  return requestOf(container) !== limit;
}

function requestOf({ resources }: Container): number {
  return bytesOf(parseResources(resources?.requests), "memory") ?? 0;
}

function restartsForMemory({ resizePolicy = [] }: Container): boolean {
  const policy = resizePolicy.find(({ resourceName }) => resourceName === "memory");
  return policy?.restartPolicy === "RestartContainer";
}
