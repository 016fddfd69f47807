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

/** How this node limits containers. */
export interface LimitFacts {
  /** Bytes; the memory share of a burstable container's OOM score is counted against it. */
  readonly memoryCapacity: number;
  readonly cpuCfsQuota: boolean;
  readonly cpuPeriodUs: number;
  /** Page sizes that the kernel has, as `2MB`. */
  readonly hugepageSizes: readonly string[];
  readonly cgroupVersion: 1 | 2;
  /** The kernel counts swap: version 1 limits it together with memory, version 2 by itself. */
  readonly canLimitSwap: boolean;
  /** When memory runs out, one process ends and not the whole container. */
  readonly singleProcessOomKill: boolean;
}

/** The limits that the runtime puts on a container (8.7). */
export function containerResources(pod: Pod, container: Container, node: LimitFacts): LinuxResources {
  const limits = parseResources(container.resources?.limits);
  const memory = containerMemoryLimit(pod, container);
  const hugepages = Object.entries(hugepageValues(limits, node.hugepageSizes));
  return {
    cpuShares: containerCpuShares(pod, container),
    ...quotaOf(containerCpuLimit(pod, container), node),
    oomScoreAdj: oomScoreAdj(pod, container, node.memoryCapacity),
    ...(memory === undefined ? {} : { memoryLimitBytes: memory }),
    ...(hugepages.length === 0 ? {} : { hugepageLimits: hugepages.map(([pageSize, limit]) => ({ pageSize, limit })) }),
    ...swapOf(memory, node),
  };
}

function quotaOf(milli: number, node: LimitFacts): Pick<LinuxResources, "cpuPeriod" | "cpuQuota"> {
  if (!node.cpuCfsQuota) return {};
  return { cpuPeriod: node.cpuPeriodUs, cpuQuota: cpuQuota(milli, node.cpuPeriodUs) };
}

/** Containers get no swap: in version 1 by a limit of both that equals the memory's, in version 2 by one of its own. */
function swapOf(
  memory: number | undefined,
  node: LimitFacts,
): Pick<LinuxResources, "unified" | "memorySwapLimitBytes"> {
  if (node.cgroupVersion === 1) {
    return memory !== undefined && node.canLimitSwap ? { memorySwapLimitBytes: memory } : {};
  }
  const unified = {
    ...(node.singleProcessOomKill ? {} : { "memory.oom.group": "1" }),
    ...(node.canLimitSwap ? { "memory.swap.max": "0" } : {}),
  };
  return Object.keys(unified).length === 0 ? {} : { unified };
}

/** What the runtime is told of the pod as a whole: its sums without overhead, and the overhead alone (8.1). */
export function sandboxResources(pod: Pod, node: LimitFacts): { resources: LinuxResources; overhead?: LinuxResources } {
  const { overhead, ...bare } = pod.spec;
  const plain: Pod = { ...pod, spec: bare };
  const limits = podLimits(plain);
  const memory = isLimited(plain, "memory") ? bytesOf(limits, "memory") : undefined;
  const milli = isLimited(plain, "cpu") ? cpuMilli(limits) : 0;
  const resources: LinuxResources = {
    cpuShares: cpuShares(cpuMilli(podRequests(plain))),
    ...quotaOf(milli, node),
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
