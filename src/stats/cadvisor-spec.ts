import { type Json, timeOf } from "./cadvisor-json.ts";
import type { CgroupRow } from "./cgroup-rows.ts";

/** What kernels write for no limit in version 1. */
const UNLIMITED = 2 ** 63 - 2 ** 12;
/** Near the largest number of 64 bits, below which it has to stay for readers: no limit of processes. */
const MOST = 2 ** 64 - 2 ** 11;

/** The limits of a cgroup and what is measured of it, in the shape of 1.x. */
export function containerSpec(row: CgroupRow): Json {
  const { cpu } = row.details;
  const limits = {
    ...(cpu?.quota !== undefined && { quota: cpu.quota }),
    ...(cpu !== undefined && cpu.period > 0 && { period: cpu.period }),
  };
  const processes = row.kind === "container" ? { limit: row.details.processes?.mostThreads || MOST } : {};
  return { ...nameless(row), cpu: { ...sharesOf(row), ...limits }, processes };
}

/** The same in the shape of 2.x, which has the names of the container beside them. */
export function containerSpecV2(row: CgroupRow): Json {
  return { ...nameless(row), ...referenceOf(row), cpu: sharesOf(row) };
}

/** The other names of a container; empty for other cgroups. */
export function referenceOf({ id, path }: CgroupRow): Json {
  return id === undefined ? {} : { aliases: [id, path], namespace: "containerd" };
}

function nameless(row: CgroupRow): Json {
  const { startedAt, details, image, kind } = row;
  const labels = labelsOf(row);
  const isRoot = kind === "root";
  return {
    creation_time: timeOf(startedAt),
    ...(labels && { labels }),
    has_cpu: details.cpu !== undefined,
    has_memory: details.memory !== undefined,
    memory: details.memory === undefined ? {} : limitsOf(details.memory, isRoot),
    has_hugetlb: false,
    has_network: row.network.length > 0,
    // cAdvisor has the processes of containers alone here, though it counts those of all cgroups.
    has_processes: details.processes !== undefined && !isRoot,
    processes: {},
    has_filesystem: row.filesystems.length > 0,
    has_diskio: true,
    has_custom_metrics: false,
    ...(image !== undefined && image !== "" && { image }),
  };
}

function labelsOf({ container, pod, namespace, uid }: CgroupRow): Json | undefined {
  if (pod === undefined) return undefined;
  return {
    ...(container !== undefined && container !== "" && { "io.kubernetes.container.name": container }),
    "io.kubernetes.pod.name": pod,
    ...(namespace !== undefined && { "io.kubernetes.pod.namespace": namespace }),
    ...(uid !== undefined && { "io.kubernetes.pod.uid": uid }),
  };
}

function sharesOf({ details: { cpu } }: CgroupRow): Json {
  return { limit: cpu?.shares ?? 0, max_limit: 0 };
}

function limitsOf(memory: NonNullable<CgroupRow["details"]["memory"]>, isRoot: boolean): Json {
  const shown = (bytes: number): number => (bytes === 0 ? UNLIMITED : bytes);
  return {
    limit: shown(memory.limit),
    reservation: shown(memory.reservation),
    ...(!isRoot && { swap_limit: shown(memory.swapLimit) }),
  };
}
