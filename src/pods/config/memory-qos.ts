import type { Container, Pod } from "../../model/generated/types.ts";
import { qosClass } from "../../model/qos.ts";
import { bytesOf, parseResources } from "../../model/resources.ts";

/** How the node throttles and protects the memory of containers. */
export interface MemoryQosFacts {
  /** Where between its request and its limit a container is throttled, from 0 to 1. */
  readonly throttlingFactor: number;
  /** True if what containers request is protected against reclaim. */
  readonly isProtected: boolean;
  /** The node's memory without reservations, in bytes: the limit of a container that has none. */
  readonly nodeBytes: number;
  readonly pageSize: number;
}

/** The keys of cgroup v2 that throttle and protect a container's memory. Pure. */
export function memoryQos(pod: Pod, container: Container, facts: MemoryQosFacts): Readonly<Record<string, string>> {
  const request = bytesOf(parseResources(container.resources?.requests), "memory") ?? 0;
  const limit = bytesOf(parseResources(container.resources?.limits), "memory") ?? 0;
  const high = request === limit ? 0 : throttledAt(request, limit || facts.nodeBytes, facts);
  return {
    ...protection(pod, request, facts),
    ...(high > request && { "memory.high": String(high) }),
  };
}

/** Guaranteed pods are never reclaimed from, burstable ones last. Zero ends the protection of an earlier setting. */
function protection(pod: Pod, request: number, { isProtected }: MemoryQosFacts): Readonly<Record<string, string>> {
  if (request === 0 || !isProtected) return { "memory.min": "0", "memory.low": "0" };
  return { [qosClass(pod) === "Guaranteed" ? "memory.min" : "memory.low"]: String(request) };
}

/** Whole pages; 0 if the node's memory is not known. */
function throttledAt(request: number, limit: number, { throttlingFactor, pageSize }: MemoryQosFacts): number {
  if (limit === 0) return 0;
  return Math.floor((request + (limit - request) * throttlingFactor) / pageSize) * pageSize;
}
