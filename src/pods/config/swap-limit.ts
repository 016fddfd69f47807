import type { Container, Pod } from "../../model/generated/types.ts";
import { isCriticalPod } from "../../model/pod-facts.ts";
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
export function swapLimit(pod: Pod, container: Container, { memoryCapacity, swapBytes }: SwapFacts): number {
  if (swapBytes === undefined || qosClass(pod) !== "Burstable" || isCriticalPod(pod)) return 0;
  const request = bytesOf(parseResources(container.resources?.requests), "memory") ?? 0;
  const limit = bytesOf(parseResources(container.resources?.limits), "memory") ?? 0;
  if (request === limit || memoryCapacity <= 0 || request > memoryCapacity) return 0;
  return Math.floor((request / memoryCapacity) * swapBytes);
}
