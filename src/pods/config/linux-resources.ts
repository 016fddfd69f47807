import type { LinuxResources } from "../../adapters/runtime/port.ts";
import {
  containerCpuLimit,
  containerCpuShares,
  containerMemoryLimit,
  cpuQuota,
  cpuShares,
  oomScoreAdj,
} from "../../model/cgroup-values.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import { hugepageValues } from "../../model/pod-cgroup-values.ts";
import { bytesOf, cpuMilli, isLimited, parseResources, podLimits, podRequests } from "../../model/resources.ts";
import { type MemoryQosFacts, memoryQos } from "./memory-qos.ts";
import { swapLimit } from "./swap-limit.ts";

/** How this node limits containers. */
export interface LimitFacts {
  /** Bytes; the memory share of a burstable container's OOM score is counted against it. */
  readonly memoryCapacity: number;
  readonly cpuCfsQuota: boolean;
  readonly cpuPeriodUs: number;
  /** True if the container (one of the pod's if missing) has CPUs of its own: then it has no quota. */
  readonly hasExclusiveCpus?: (pod: Pod, container?: Container) => boolean;
  /** Page sizes that the kernel has, as `2MB`. */
  readonly hugepageSizes: readonly string[];
  readonly cgroupVersion: 1 | 2;
  /** True if the kernel accounts swap: cgroup v1 limits it together with memory, v2 by itself. */
  readonly canLimitSwap: boolean;
  /** True if the OOM killer ends one process and not the whole container. */
  readonly singleProcessOomKill: boolean;
  /** Bytes of the node's swap if containers get their share of it; undefined if they get none. */
  readonly swapBytes?: number | undefined;
  /** Set if memory use is throttled and protected. */
  readonly memoryQos?: MemoryQosFacts | undefined;
}

/** Returns the limits that the runtime puts on a container. */
export function containerResources(pod: Pod, container: Container, node: LimitFacts): LinuxResources {
  // Of what the pod has as a whole, each container may use everything, unless it has a limit of its own.
  const limits = parseResources({ ...pod.spec.resources?.limits, ...container.resources?.limits });
  const memory = containerMemoryLimit(pod, container);
  const hugepages = Object.entries(hugepageValues(limits, node.hugepageSizes));
  return {
    cpuShares: containerCpuShares(pod, container),
    ...quotaOf(containerCpuLimit(pod, container), node, node.hasExclusiveCpus?.(pod, container)),
    oomScoreAdj: oomScoreAdj(pod, container, node.memoryCapacity),
    ...(memory === undefined ? {} : { memoryLimitBytes: memory }),
    ...(hugepages.length === 0 ? {} : { hugepageLimits: hugepages.map(([pageSize, limit]) => ({ pageSize, limit })) }),
    ...memoryControls({ pod, container, memory }, node),
  };
}

function quotaOf(milli: number, node: LimitFacts, isUnlimited = false): Pick<LinuxResources, "cpuPeriod" | "cpuQuota"> {
  if (!node.cpuCfsQuota) return {};
  return { cpuPeriod: node.cpuPeriodUs, cpuQuota: isUnlimited ? -1 : cpuQuota(milli, node.cpuPeriodUs) };
}

/** Swap, protection, and how the OOM killer chooses. Cgroup v1 only limits memory and swap together. */
function memoryControls(
  { pod, container, memory }: { pod: Pod; container: Container; memory: number | undefined },
  node: LimitFacts,
): Pick<LinuxResources, "unified" | "memorySwapLimitBytes"> {
  if (node.cgroupVersion === 1) {
    return memory !== undefined && node.canLimitSwap ? { memorySwapLimitBytes: memory } : {};
  }
  const unified = {
    ...(node.singleProcessOomKill ? {} : { "memory.oom.group": "1" }),
    ...(node.canLimitSwap ? { "memory.swap.max": String(swapLimit(pod, container, node)) } : {}),
    ...(node.memoryQos && memoryQos(pod, container, node.memoryQos)),
  };
  return Object.keys(unified).length === 0 ? {} : { unified };
}

/** The resources of a pod as a whole: the sums without overhead, and the overhead alone. */
export interface SandboxResources {
  readonly resources: LinuxResources;
  readonly overhead?: LinuxResources;
}

/**
 * Returns what a new sandbox is sized by. As in Kubernetes, limits are the sums of those that containers have, even if
 * others have none: a runtime with virtual machines adds them to the size of its own.
 */
export function sandboxResources(pod: Pod, node: LimitFacts): SandboxResources {
  return wholeOf(pod, node, () => true);
}

/** Returns what a sandbox is told of a resize: there is a limit only if all containers have one, as of the pod's cgroup. */
export function resizedResources(pod: Pod, node: LimitFacts): SandboxResources {
  return wholeOf(pod, node, (plain, resource) => isLimited(plain, resource));
}

function wholeOf(
  pod: Pod,
  node: LimitFacts,
  hasLimit: (pod: Pod, resource: "cpu" | "memory") => boolean,
): SandboxResources {
  const { overhead, ...bare } = pod.spec;
  const plain: Pod = { ...pod, spec: bare };
  const [requests, limits] = [podRequests(plain), podLimits(plain)];
  const memory = hasLimit(plain, "memory") ? bytesOf(limits, "memory") : undefined;
  const milli = hasLimit(plain, "cpu") ? cpuMilli(limits) : 0;
  const resources: LinuxResources = {
    cpuShares: cpuShares(cpuMilli(requests.cpu === undefined ? limits : requests)),
    ...quotaOf(milli, node, node.hasExclusiveCpus?.(plain)),
    ...(memory === undefined ? {} : { memoryLimitBytes: memory }),
  };
  if (overhead === undefined) return { resources };
  const extra = parseResources(overhead);
  const extraMemory = bytesOf(extra, "memory");
  return {
    resources,
    overhead: {
      cpuShares: cpuShares(cpuMilli(extra)),
      ...quotaOf(cpuMilli(extra), node),
      ...(extraMemory === undefined ? {} : { memoryLimitBytes: extraMemory }),
    },
  };
}
