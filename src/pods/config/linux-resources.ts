import type { LinuxResources } from "../../adapters/cri/port.ts";
import { containerCpuShares, containerMemoryLimit, cpuQuota, oomScoreAdj } from "../../model/cgroup-values.ts";
import type { Container, Pod } from "../../model/generated/types.ts";
import { cpuMilli, parseResources } from "../../model/resources.ts";

/** The default CFS period, in microseconds. */
const CPU_PERIOD_US = 100_000;

/** The limits that the runtime puts on a container (8.7). */
export function containerResources(pod: Pod, container: Container, node: { memoryCapacity: number }): LinuxResources {
  const quota = cpuQuota(cpuMilli(parseResources(container.resources?.limits)), CPU_PERIOD_US);
  const memory = containerMemoryLimit(pod, container);
  return {
    cpuShares: containerCpuShares(container),
    cpuPeriod: CPU_PERIOD_US,
    cpuQuota: quota,
    oomScoreAdj: oomScoreAdj(pod, container, node.memoryCapacity),
    ...(memory === undefined ? {} : { memoryLimitBytes: memory }),
  };
}
