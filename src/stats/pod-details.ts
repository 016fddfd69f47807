import type { ContainerDetails } from "../model/page-lines.ts";
import type { BlockDeviceUsage, CgroupDetails } from "../model/usage.ts";
import type { PodSample } from "./samples.ts";

/** Counters of a pod's containers, read now. Containers whose cgroup is gone are missing. */
export function podDetails(
  pod: PodSample | undefined,
  read: (cgroup: string) => CgroupDetails | undefined,
): readonly ContainerDetails[] {
  return (pod?.containers ?? []).flatMap(({ name, cgroup }) => {
    const details = read(cgroup);
    return details === undefined ? [] : [detailsOf(name, details)];
  });
}

function detailsOf(name: string, { cpu, disks, processes, oomKills }: CgroupDetails): ContainerDetails {
  const isLimited = cpu?.quota !== undefined && cpu.quota > 0 && cpu.period > 0;
  return {
    name,
    readBytes: sumOf(disks, "Read"),
    writtenBytes: sumOf(disks, "Write"),
    throttledNanos: cpu?.throttledNanos ?? 0,
    ...(isLimited && { cpuLimitCores: (cpu.quota ?? 0) / cpu.period }),
    ...(processes && {
      processes: processes.processes,
      descriptors: processes.descriptors,
      sockets: processes.sockets,
    }),
    oomKills,
  };
}

function sumOf(disks: readonly BlockDeviceUsage[], operation: "Read" | "Write"): number {
  return disks.reduce((sum, { bytes }) => sum + (bytes[operation] ?? 0), 0);
}
