import { cpuQuota, cpuShares } from "./cgroup-values.ts";
import type { Pod } from "./generated/types.ts";
import { qosClass } from "./qos.ts";
import { bytesOf, cpuMilli, isLimited, podLimits, podRequests, type ResourceAmounts } from "./resources.ts";

/** What is written into a cgroup; an absent value is left as it is. -1 stands for "no limit". */
export interface CgroupValues {
  /** The unit of version 1; version 2 gets the weight that follows from it. */
  readonly cpuShares?: number;
  /** Microseconds per period; the two are written together. */
  readonly cpuQuota?: { readonly quota: number; readonly period: number };
  readonly memoryLimit?: number;
  /** Bytes that the kernel never reclaims; only in version 2. */
  readonly memoryMin?: number;
  /** Bytes that the kernel reclaims only when nothing else is left; only in version 2. */
  readonly memoryLow?: number;
  readonly pids?: number;
  /** The CPUs that may be used, as the kernel lists them (`0-3,8`); only written in version 2. */
  readonly cpus?: string;
  /** Bytes by page size as the kernel's files name it (`2MB`). */
  readonly hugepages?: Readonly<Record<string, number>>;
}

/** How limits are enforced on this node. */
export interface CgroupRules {
  readonly cpuCfsQuota: boolean;
  /** True if a container of the pod has CPUs of its own: then the pod has no quota. */
  readonly hasExclusiveCpus?: (pod: Pod) => boolean;
  readonly cpuPeriodUs: number;
  /** Page sizes that the kernel has, as `2MB`. */
  readonly hugepageSizes: readonly string[];
  /** Processes per pod; 0 or less means no limit. */
  readonly podPidsLimit: number;
  /** Set if memory protection is managed (gate MemoryQoS on cgroup v2); true protects what pods request. */
  readonly protectsMemory?: boolean | undefined;
}

/** The values of a pod's own cgroup. */
export function podCgroupValues(pod: Pod, rules: CgroupRules): CgroupValues {
  const limits = podLimits(pod);
  const quota = quotaOf(pod, limits, rules);
  const memory = isLimited(pod, "memory") ? bytesOf(limits, "memory") : undefined;
  const isBestEffort = qosClass(pod) === "BestEffort";
  return {
    cpuShares: isBestEffort ? cpuShares(0) : cpuShares(cpuMilli(podRequests(pod))),
    cpuQuota: { quota: isBestEffort ? -1 : quota, period: rules.cpuPeriodUs },
    memoryLimit: isBestEffort ? -1 : (memory ?? -1),
    pids: rules.podPidsLimit > 0 ? rules.podPidsLimit : -1,
    hugepages: hugepageValues(limits, rules.hugepageSizes),
    ...(rules.protectsMemory !== undefined && memoryProtection(pod, rules.protectsMemory)),
  };
}

/** Guaranteed pods are protected in any case (`memory.min`), burstable ones as far as possible (`memory.low`). */
function memoryProtection(pod: Pod, isProtected: boolean): Pick<CgroupValues, "memoryMin" | "memoryLow"> {
  const request = isProtected ? memoryRequest(pod) : 0;
  const isGuaranteed = qosClass(pod) === "Guaranteed";
  return { memoryMin: isGuaranteed ? request : 0, memoryLow: isGuaranteed ? 0 : request };
}

/** Bytes of memory that the pod requests. */
export function memoryRequest(pod: Pod): number {
  return bytesOf(podRequests(pod), "memory") ?? 0;
}

function quotaOf(pod: Pod, limits: ResourceAmounts, { cpuCfsQuota, cpuPeriodUs, ...rules }: CgroupRules): number {
  if (!cpuCfsQuota || rules.hasExclusiveCpus?.(pod) === true || !isLimited(pod, "cpu")) return -1;
  return cpuQuota(cpuMilli(limits), cpuPeriodUs) || -1;
}

/** The larger of each limit, -1 being the largest; what only one of them has counts. */
export function largerValues(a: CgroupValues, b: CgroupValues): CgroupValues {
  const larger = (x: number | undefined, y: number | undefined): number | undefined => {
    if (x === undefined || y === undefined) return x ?? y;
    return x < 0 || y < 0 ? -1 : Math.max(x, y);
  };
  const cpuShares = Math.max(a.cpuShares ?? 0, b.cpuShares ?? 0);
  const quota = larger(a.cpuQuota?.quota, b.cpuQuota?.quota);
  const memoryLimit = larger(a.memoryLimit, b.memoryLimit);
  return {
    ...b,
    ...(cpuShares > 0 && { cpuShares }),
    ...(b.cpuQuota !== undefined && quota !== undefined && { cpuQuota: { ...b.cpuQuota, quota } }),
    ...(memoryLimit !== undefined && { memoryLimit }),
  };
}

/** The values of the cgroup of all pods, from what the node has for them. */
export function nodeCgroupValues(
  allocatable: ResourceAmounts,
  { pids, hugepageSizes }: { pids: number | undefined; hugepageSizes: readonly string[] },
): CgroupValues {
  const memory = bytesOf(allocatable, "memory");
  return {
    cpuShares: cpuShares(cpuMilli(allocatable)),
    ...(memory === undefined ? {} : { memoryLimit: memory }),
    ...(pids === undefined ? {} : { pids }),
    hugepages: hugepageValues(allocatable, hugepageSizes),
  };
}

/** The values of the cgroup of all burstable pods, or of all best-effort ones (of none then). */
export function classCgroupValues(pods: readonly Pod[]): CgroupValues {
  const milli = pods.map((pod) => cpuMilli(podRequests(pod))).reduce((sum, each) => sum + each, 0);
  return { cpuShares: cpuShares(milli) };
}

/** Bytes by page size, 0 for every size that the list does not name. */
export function hugepageValues(amounts: ResourceAmounts, sizes: readonly string[]): Record<string, number> {
  const asked = Object.keys(amounts).flatMap((name) => {
    const size = hugepageSize(name);
    return size === undefined ? [] : [[size, bytesOf(amounts, name) ?? 0] as const];
  });
  return Object.fromEntries([...sizes.map((size) => [size, 0] as const), ...asked]);
}

/** `hugepages-2Mi` is `2MB` in the names of the kernel's files; undefined for other resources. */
export function hugepageSize(resource: string): string | undefined {
  const match = /^hugepages-(\d+)([KMG])i$/.exec(resource);
  return match === null
    ? undefined
    : pageSizeName(Number(match[1]) * ({ K: 1, M: 1024, G: 1024 ** 2 }[match[2] ?? ""] ?? 1));
}

/** A page size in KiB, as the kernel's files have it: `64KB`, `2MB`, `1GB`. */
export function pageSizeName(kib: number): string {
  if (kib >= 1024 ** 2 && kib % 1024 ** 2 === 0) return `${kib / 1024 ** 2}GB`;
  return kib >= 1024 && kib % 1024 === 0 ? `${kib / 1024}MB` : `${kib}KB`;
}
