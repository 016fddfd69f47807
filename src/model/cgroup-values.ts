import type { Container, Pod } from "./generated/types.ts";
import { isNodeCriticalPod, isSidecar } from "./pod-facts.ts";
import { qosClass } from "./qos.ts";
import { wholeValue } from "./quantity.ts";
import { bytesOf, containerTotals, cpuMilli, parseResources } from "./resources.ts";

const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
/** The kernel takes no smaller quota, in microseconds. */
const MIN_QUOTA_US = 1000;

/** CPU shares (the unit of cgroup v1 and of CRI) of an amount in millicores. */
export function cpuShares(milli: number): number {
  return Math.min(MAX_SHARES, Math.max(MIN_SHARES, Math.floor((milli * 1024) / 1000)));
}

/** Shares of a container: of its request, or of its limit (see `containerCpuLimit`) when it has no request. */
export function containerCpuShares(pod: Pod, container: Container): number {
  const requests = parseResources(container.resources?.requests);
  return cpuShares(requests.cpu === undefined ? containerCpuLimit(pod, container) : cpuMilli(requests));
}

/** CPU limit of a container in millicores: its own, else the pod's, else 0 for none. */
export function containerCpuLimit(pod: Pod, container: Container): number {
  const own = cpuMilli(parseResources(container.resources?.limits));
  return own === 0 ? cpuMilli(parseResources(pod.spec.resources?.limits)) : own;
}

/** CFS quota in microseconds per period; 0 means no limit. */
export function cpuQuota(milli: number, periodUs: number): number {
  return milli === 0 ? 0 : Math.max(MIN_QUOTA_US, Math.floor((milli * periodUs) / 1000));
}

/** The cgroup v2 weight that the agent itself writes for its own cgroups (kubepods, QoS, pod). */
export function sharesToWeight(shares: number): number {
  if (shares >= MAX_SHARES) return 10_000;
  return 1 + Math.floor(((Math.max(MIN_SHARES, shares) - 2) * 9999) / 262_142);
}

/** Memory limit of a container in bytes: its own, else the pod's, else undefined. 0 is no limit, as in Kubernetes. */
export function containerMemoryLimit(pod: Pod, container: Container): number | undefined {
  const own = bytesOf(parseResources(container.resources?.limits), "memory");
  return own || bytesOf(parseResources(pod.spec.resources?.limits), "memory") || undefined;
}

/** How willing the kernel is to kill this container when memory runs out: -997 (last) to 1000 (first). */
export function oomScoreAdj(pod: Pod, container: Container, memoryCapacity: number): number {
  if (isNodeCriticalPod(pod)) return -997;
  const qos = qosClass(pod);
  if (qos === "Guaranteed") return -997;
  if (qos === "BestEffort") return 1000;
  const spare = spareMemoryShare(pod);
  let score = requestScore(memoryRequest(container) + spare, memoryCapacity);
  const isInitSidecar = isSidecar(container) && (pod.spec.initContainers ?? []).some((c) => c.name === container.name);
  if (isInitSidecar && pod.spec.containers.length > 0) {
    // A sidecar must outlive the regular containers that it serves.
    const smallest = Math.min(...pod.spec.containers.map(memoryRequest)) + spare;
    score = Math.min(score, requestScore(smallest, memoryCapacity));
  }
  // Never as low as Guaranteed ones, never as high as BestEffort ones.
  if (score < 3) return 3;
  return score === 1000 ? 999 : score;
}

function requestScore(request: number, capacity: number): number {
  if (capacity <= 0) return 999;
  return 1000 - Number((1000n * BigInt(request)) / BigInt(capacity));
}

function memoryRequest(container: Container): number {
  return bytesOf(parseResources(container.resources?.requests), "memory") ?? 0;
}

/** Each container's even part of the pod-level request that no container asked for. */
function spareMemoryShare(pod: Pod): number {
  const podRequest = bytesOf(parseResources(pod.spec.resources?.requests), "memory");
  if (podRequest === undefined) return 0;
  const asked = containerTotals(pod, "requests").memory;
  const spare = podRequest - (asked === undefined ? 0 : wholeValue(asked));
  const count = pod.spec.containers.length + (pod.spec.initContainers ?? []).filter(isSidecar).length;
  return spare > 0 && count > 0 ? Math.floor(spare / count) : 0;
}
