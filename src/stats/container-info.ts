import type { BlockDeviceUsage, InterfaceUsage, MountedFilesystem } from "../model/usage.ts";
import type { CgroupRow } from "./cgroup-rows.ts";
import type { MachineDescription } from "./machine-description.ts";

type Json = Readonly<Record<string, unknown>>;

/** cAdvisor writes the kernel's unlimited as the largest number. */
const UNLIMITED = 2 ** 64 - 2 ** 11;

/** A cgroup as cAdvisor's API 1.x shows it, with the newest sample. */
export function containerInfo(row: CgroupRow, subcontainers: readonly string[]): Json {
  const { path, id, container, pod, namespace, uid } = row;
  const labels = {
    ...(container !== undefined && container !== "" && { "io.kubernetes.container.name": container }),
    ...(pod !== undefined && { "io.kubernetes.pod.name": pod }),
    ...(namespace !== undefined && { "io.kubernetes.pod.namespace": namespace }),
    ...(uid !== undefined && { "io.kubernetes.pod.uid": uid }),
  };
  return {
    ...(id !== undefined && { id, aliases: [id, path], namespace: "containerd" }),
    name: path,
    ...(pod !== undefined && { labels }),
    ...(subcontainers.length > 0 && { subcontainers: subcontainers.map((name) => ({ name })) }),
    spec: containerSpec(row),
    stats: [containerStats(row)],
  };
}

/** The limits of a cgroup, in the shape of 1.x and 2.x. */
export function containerSpec({ startedAt, details, network, filesystems, image }: CgroupRow): Json {
  const { cpu, memory, disks } = details;
  return {
    creation_time: timeOf(startedAt),
    has_cpu: cpu !== undefined,
    cpu: {
      limit: cpu?.shares ?? 0,
      max_limit: 0,
      ...(cpu?.quota !== undefined && { quota: cpu.quota }),
      ...(cpu !== undefined && { period: cpu.period }),
    },
    has_memory: memory !== undefined,
    memory: memory === undefined ? {} : limitsOf(memory),
    has_hugetlb: false,
    has_network: network.length > 0,
    has_processes: details.processes !== undefined,
    processes: {},
    has_filesystem: filesystems.length > 0,
    has_diskio: disks.length > 0,
    has_custom_metrics: false,
    ...(image !== undefined && image !== "" && { image }),
  };
}

function limitsOf(memory: NonNullable<CgroupRow["details"]["memory"]>): Json {
  const shown = (bytes: number): number => (bytes === 0 ? UNLIMITED : bytes);
  return {
    limit: shown(memory.limit),
    swap_limit: shown(memory.swapLimit),
    ...(memory.reservation > 0 && { reservation: memory.reservation }),
  };
}

/** The newest sample of a cgroup in the shape of 1.x. */
export function containerStats(row: CgroupRow): Json {
  return {
    timestamp: timeOf(row.usage.at.wall),
    ...commonStats(row),
    network: { ...(row.network[0] && interfaceStats(row.network[0])), ...interfacesOf(row) },
    ...(row.filesystems.length > 0 && { filesystem: row.filesystems.map(filesystemStats) }),
    task_stats: taskStats(),
  };
}

/** The newest sample of a cgroup in the shape of 2.x. */
export function containerStatsV2(row: CgroupRow): Json {
  const { usage, network, filesystems } = row;
  const { nanoCores } = usage;
  return {
    timestamp: timeOf(usage.at.wall),
    has_cpu: usage.cpu !== undefined,
    has_memory: usage.memory !== undefined,
    has_network: network.length > 0,
    has_filesystem: filesystems.length > 0,
    has_diskio: row.details.disks.length > 0,
    ...commonStats(row),
    ...(nanoCores !== undefined && { cpu_inst: { usage: { total: nanoCores, user: 0, system: 0 } } }),
    ...(network.length > 0 && { network: interfacesOf(row) }),
    load_stats: taskStats(),
  };
}

function commonStats({ usage, details }: CgroupRow): Json {
  const { cpu, memory } = usage;
  const faults = { pgfault: memory?.pageFaults ?? 0, pgmajfault: memory?.majorPageFaults ?? 0 };
  return {
    cpu: {
      usage: {
        total: cpu?.usageNanos ?? 0,
        user: details.cpu?.userNanos ?? 0,
        system: details.cpu?.systemNanos ?? 0,
      },
      cfs: {
        periods: details.cpu?.periods ?? 0,
        throttled_periods: details.cpu?.throttledPeriods ?? 0,
        throttled_time: details.cpu?.throttledNanos ?? 0,
      },
      load_average: 0,
      ...(cpu?.psi && { psi: cpu.psi }),
    },
    diskio: diskStats(details.disks),
    memory: {
      usage: memory?.usage ?? 0,
      max_usage: details.memory?.peak ?? 0,
      cache: details.memory?.cache ?? 0,
      rss: memory?.rss ?? 0,
      swap: memory?.swap ?? 0,
      mapped_file: details.memory?.mappedFile ?? 0,
      working_set: memory?.workingSet ?? 0,
      failcnt: details.memory?.failures ?? 0,
      container_data: faults,
      hierarchical_data: faults,
      ...(memory?.psi && { psi: memory.psi }),
    },
    processes: {
      process_count: details.processes?.processes ?? 0,
      fd_count: details.processes?.descriptors ?? 0,
      socket_count: details.processes?.sockets ?? 0,
      threads_current: details.processes?.threads ?? 0,
      threads_max: details.processes?.mostThreads ?? 0,
    },
  };
}

function diskStats(disks: readonly BlockDeviceUsage[]): Json {
  const table = (pick: (of: BlockDeviceUsage) => Json) =>
    disks.map((disk) => ({ device: disk.device, major: disk.major, minor: disk.minor, stats: pick(disk) }));
  if (disks.length === 0) return {};
  return { io_service_bytes: table(({ bytes }) => bytes), io_serviced: table(({ operations }) => operations) };
}

function interfacesOf({ network }: CgroupRow): Json {
  return { ...(network.length > 0 && { interfaces: network.map(interfaceStats) }) };
}

function interfaceStats(of: InterfaceUsage): Json {
  return {
    name: of.name,
    rx_bytes: of.rxBytes,
    rx_packets: of.rxPackets,
    rx_errors: of.rxErrors,
    rx_dropped: of.rxDropped,
    tx_bytes: of.txBytes,
    tx_packets: of.txPackets,
    tx_errors: of.txErrors,
    tx_dropped: of.txDropped,
  };
}

/** A filesystem in the shape of 1.x. */
export function filesystemStats({ device, type, space, activity }: MountedFilesystem): Json {
  return {
    device,
    type: type === "tmpfs" || type === "zfs" ? type : "vfs",
    capacity: space.capacityBytes,
    usage: space.usedBytes,
    base_usage: 0,
    available: space.availableBytes,
    has_inodes: true,
    inodes: space.inodes,
    inodes_free: space.inodesFree,
    reads_completed: activity?.reads ?? 0,
    reads_merged: activity?.readsMerged ?? 0,
    sectors_read: activity?.sectorsRead ?? 0,
    read_time: activity?.readMs ?? 0,
    writes_completed: activity?.writes ?? 0,
    writes_merged: activity?.writesMerged ?? 0,
    sectors_written: activity?.sectorsWritten ?? 0,
    write_time: activity?.writeMs ?? 0,
    io_in_progress: activity?.inProgress ?? 0,
    io_time: activity?.ioMs ?? 0,
    weighted_io_time: activity?.weightedMs ?? 0,
  };
}

function taskStats(): Json {
  return { nr_sleeping: 0, nr_running: 0, nr_stopped: 0, nr_uninterruptible: 0, nr_io_wait: 0 };
}

/** The machine as cAdvisor shows it: `/spec/` and `machine`. */
export function machineJson(machine: MachineDescription, filesystems: readonly MountedFilesystem[]): Json {
  return {
    timestamp: timeOf(machine.at),
    num_cores: machine.cores,
    num_physical_cores: machine.physicalCores,
    num_sockets: machine.sockets,
    cpu_frequency_khz: machine.cpuKhz,
    memory_capacity: machine.memoryBytes,
    swap_capacity: machine.swapBytes,
    memory_by_type: {},
    hugepages: [],
    machine_id: machine.machineId,
    system_uuid: machine.systemUuid,
    boot_id: machine.bootId,
    filesystems: filesystems.map(({ device, type, space }) => {
      return {
        device,
        capacity: space.capacityBytes,
        type: type === "tmpfs" ? type : "vfs",
        inodes: space.inodes,
        has_inodes: true,
      };
    }),
    disk_map: machine.disks,
    network_devices: machine.networkDevices,
    topology: null,
    cloud_provider: "Unknown",
    instance_type: "Unknown",
    instance_id: "None",
  };
}

/** Facts of the system in the shape of 2.x. */
export function attributesJson(machine: MachineDescription, filesystems: readonly MountedFilesystem[]): Json {
  const { timestamp: _at, boot_id: _boot, instance_id: _id, ...shared } = machineJson(machine, filesystems);
  return {
    kernel_version: machine.kernel,
    container_os_version: machine.osImage,
    docker_version: "",
    docker_api_version: "",
    cadvisor_version: machine.version,
    ...shared,
  };
}

/** RFC 3339 with milliseconds. */
export function timeOf(wall: number): string {
  return new Date(wall).toISOString();
}
