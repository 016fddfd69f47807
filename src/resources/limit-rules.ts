import type { KernelLimits } from "../adapters/cgroup/facts.ts";
import type { AgentOptions } from "../config/index.ts";
import { pageSizeName } from "../model/pod-cgroup-values.ts";
import { amountOf, subtractAmounts, tryParseQuantity, wholeValue, ZERO } from "../model/quantity.ts";
import { addResources, parseResources, type ResourceAmounts } from "../model/resources.ts";
import type { LimitRules } from "./pod-cgroups.ts";

/** The settings that limits are computed from. */
export type LimitOptions = Pick<
  AgentOptions,
  "enforceNodeAllocatable" | "systemReserved" | "kubeReserved" | "cpuCFSQuota" | "cpuCFSQuotaPeriod" | "podPidsLimit"
>;

/** The limits of all pods together, and how those of a pod are enforced. Hard eviction is not subtracted, as in Kubernetes. Pure. */
export function limitRules(
  options: LimitOptions,
  machine: { cores: number; memoryBytes: number; hugePages: Readonly<Record<string, number>> },
  kernel: Pick<KernelLimits, "hugepageKib" | "pidMax">,
): LimitRules {
  const pages = Object.entries(machine.hugePages);
  const capacity: ResourceAmounts = {
    cpu: amountOf(machine.cores),
    memory: amountOf(machine.memoryBytes, "binary"),
    // A page size that is missing here would be limited to 0 for all pods together.
    ...Object.fromEntries(pages.map(([size, bytes]) => [`hugepages-${size}`, amountOf(bytes, "binary")])),
  };
  const isEnforced = options.enforceNodeAllocatable.includes("pods");
  const { pid: systemPids, ...system } = options.systemReserved;
  const { pid: kubePids, ...kube } = options.kubeReserved;
  const reserved = addResources(parseResources(system), parseResources(kube));
  const pids = [systemPids, kubePids].map((text) => wholeValue(tryParseQuantity(text ?? "0") ?? ZERO));
  const keptPids = isEnforced ? pids.reduce((sum, each) => sum + each, 0) : 0;
  const allocatable = Object.fromEntries(
    Object.entries(capacity).map(([name, amount]) => {
      const left = isEnforced ? subtractAmounts(amount, reserved[name] ?? ZERO) : amount;
      return [name, left.nano < 0n ? ZERO : left];
    }),
  );
  return {
    cpuCfsQuota: options.cpuCFSQuota,
    cpuPeriodUs: options.cpuCFSQuotaPeriod * 1000,
    hugepageSizes: kernel.hugepageKib.map(pageSizeName),
    podPidsLimit: options.podPidsLimit,
    node: { allocatable, pids: kernel.pidMax === undefined ? undefined : kernel.pidMax - keptPids },
  };
}

/** The node's facts that limits of containers are computed from. */
export interface ContainerLimitFacts {
  readonly memoryCapacity: number;
  readonly cpuCfsQuota: boolean;
  readonly cpuPeriodUs: number;
  readonly hugepageSizes: readonly string[];
  readonly cgroupVersion: 1 | 2;
  readonly canLimitSwap: boolean;
  readonly singleProcessOomKill: boolean;
}

/** Returns the facts for limits of containers. Pure. */
export function limitFacts(
  options: AgentOptions,
  machine: { memoryBytes: number },
  kernel: KernelLimits,
): ContainerLimitFacts {
  return {
    memoryCapacity: machine.memoryBytes,
    cpuCfsQuota: options.cpuCFSQuota,
    cpuPeriodUs: options.cpuCFSQuotaPeriod * 1000,
    hugepageSizes: kernel.hugepageKib.map(pageSizeName),
    cgroupVersion: kernel.cgroupVersion ?? 1,
    canLimitSwap: kernel.canLimitSwap,
    // Version 1 cannot kill all processes of a container as a group.
    singleProcessOomKill: options.singleProcessOOMKill ?? kernel.cgroupVersion !== 2,
  };
}
