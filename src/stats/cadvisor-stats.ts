import type { BlockDeviceUsage, InterfaceUsage, MountedFilesystem, PressureStall } from "../model/usage.ts";
import { type Json, timeOf } from "./cadvisor-json.ts";
import type { CgroupRow } from "./cgroup-rows.ts";

const NO_STALL = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
/** Where the kernel does not measure it, as cAdvisor has it. */
const UNKNOWN: PressureStall = { full: NO_STALL, some: NO_STALL };
/** What a kubelet does not have cAdvisor collect: clients find the fields. */
const NO_SCHEDSTAT = { run_time: 0, runqueue_time: 0, run_periods: 0 };
const NO_TCP = Object.fromEntries(
  [
    ...["Established", "SynSent", "SynRecv", "FinWait1", "FinWait2", "TimeWait"],
    ...["Close", "CloseWait", "LastAck", "Listen", "Closing"],
  ].map((state) => [state, 0]),
);
const NO_UDP = { Listen: 0, Dropped: 0, RxQueued: 0, TxQueued: 0 };
const CONNECTIONS = { tcp: NO_TCP, tcp6: NO_TCP, udp: NO_UDP, udp6: NO_UDP };
const NO_LOAD = { nr_sleeping: 0, nr_running: 0, nr_stopped: 0, nr_uninterruptible: 0, nr_io_wait: 0 };

/** The newest sample of a cgroup in the shape of 1.x. */
export function containerStats(row: CgroupRow): Json {
  const [first] = row.network;
  return {
    timestamp: timeOf(row.usage.at.wall),
    cpu: cpuStats(row),
    diskio: diskStats(row),
    memory: memoryStats(row),
    network: { ...interfaceStats(first ?? NO_INTERFACE), ...interfacesOf(row), ...CONNECTIONS },
    ...(row.filesystems.length > 0 && { filesystem: row.filesystems.map(filesystemStats) }),
    task_stats: NO_LOAD,
    processes: processStats(row),
    resctrl: {},
    cpuset: { memory_migrate: 0 },
    ...(row.details.oomKills > 0 && { oom_events: row.details.oomKills }),
    health: { status: "" },
  };
}

/** The same in the shape of 2.0, with a word about each part. */
export function containerStatsV20(row: CgroupRow): Json {
  const { usage, network, filesystems, details } = row;
  return {
    timestamp: timeOf(usage.at.wall),
    has_cpu: usage.cpu !== undefined,
    cpu: cpuStats(row),
    ...instantOf(row),
    has_diskio: true,
    diskio: diskStats(row),
    has_memory: usage.memory !== undefined,
    memory: memoryStats(row),
    has_hugetlb: false,
    has_network: network.length > 0,
    network: { ...interfacesOf(row), ...CONNECTIONS },
    has_processes: details.processes !== undefined,
    processes: processStats(row),
    has_filesystem: filesystems.length > 0,
    ...(filesystems.length > 0 && { filesystem: filesystems.map(filesystemStats) }),
    has_load: false,
    load_stats: NO_LOAD,
    has_custom_metrics: false,
    resctrl: {},
  };
}

/** The same in the shape of 2.1, which leaves out what is not measured. */
export function containerStatsV21(row: CgroupRow): Json {
  const { usage, network, details } = row;
  return {
    timestamp: timeOf(usage.at.wall),
    ...(usage.cpu && { cpu: cpuStats(row) }),
    ...instantOf(row),
    diskio: diskStats(row),
    ...(usage.memory && { memory: memoryStats(row) }),
    ...(network.length > 0 && { network: { ...interfacesOf(row), ...CONNECTIONS } }),
    ...(details.processes && { processes: processStats(row) }),
    resctrl: {},
  };
}

/** The newest sample of the root cgroup in the shape of `machinestats`. */
export function machineStats(row: CgroupRow): Json {
  const { cpu, cpu_inst, memory, network } = containerStatsV21(row);
  return {
    timestamp: timeOf(row.usage.at.wall),
    ...(cpu !== undefined && { cpu }),
    ...(cpu_inst !== undefined && { cpu_inst }),
    ...(memory !== undefined && { memory }),
    ...(network !== undefined && { network }),
    ...(row.filesystems.length > 0 && { filesystem: row.filesystems.map(machineFilesystem) }),
  };
}

function instantOf({ usage: { nanoCores } }: CgroupRow): Json {
  return nanoCores === undefined ? {} : { cpu_inst: { usage: { total: nanoCores, user: 0, system: 0 } } };
}

function cpuStats({ usage: { cpu }, details }: CgroupRow): Json {
  return {
    usage: {
      total: cpu?.usageNanos ?? 0,
      user: details.cpu?.userNanos ?? 0,
      system: details.cpu?.systemNanos ?? 0,
    },
    cfs: {
      periods: details.cpu?.periods ?? 0,
      throttled_periods: details.cpu?.throttledPeriods ?? 0,
      throttled_time: details.cpu?.throttledNanos ?? 0,
      bursts_periods: details.cpu?.burstPeriods ?? 0,
      burst_time: details.cpu?.burstNanos ?? 0,
    },
    schedstat: NO_SCHEDSTAT,
    load_average: 0,
    load_d_average: 0,
    psi: cpu?.psi ?? UNKNOWN,
  };
}

function memoryStats({ usage: { memory }, details }: CgroupRow): Json {
  const { pageFaults = 0, majorPageFaults = 0, own } = memory ?? {};
  const faults = (pgfault: number, pgmajfault: number): Json => ({ pgfault, pgmajfault, numa_stats: {} });
  return {
    usage: memory?.usage ?? 0,
    max_usage: details.memory?.peak ?? 0,
    cache: details.memory?.cache ?? 0,
    rss: memory?.rss ?? 0,
    swap: memory?.swap ?? 0,
    mapped_file: details.memory?.mappedFile ?? 0,
    working_set: memory?.workingSet ?? 0,
    total_active_file: details.memory?.activeFile ?? 0,
    total_inactive_file: details.memory?.inactiveFile ?? 0,
    failcnt: details.memory?.failures ?? 0,
    kernel: details.memory?.kernel ?? 0,
    container_data: faults(own?.pageFaults ?? pageFaults, own?.majorPageFaults ?? majorPageFaults),
    hierarchical_data: faults(pageFaults, majorPageFaults),
    psi: memory?.psi ?? UNKNOWN,
  };
}

function processStats({ details: { processes } }: CgroupRow): Json {
  const { openFiles } = processes ?? {};
  const limit = { name: "max_open_files", soft_limit: openFiles, hard_limit: openFiles };
  return {
    process_count: processes?.processes ?? 0,
    fd_count: processes?.descriptors ?? 0,
    socket_count: processes?.sockets ?? 0,
    ...(processes !== undefined && processes.threads > 0 && { threads_current: processes.threads }),
    ...(processes !== undefined && processes.mostThreads > 0 && { threads_max: processes.mostThreads }),
    ...(openFiles !== undefined && { ulimits: [limit] }),
  };
}

function diskStats({ details: { disks }, usage: { io } }: CgroupRow): Json {
  const table = (pick: (of: BlockDeviceUsage) => Json) =>
    disks.map((disk) => ({ device: disk.device, major: disk.major, minor: disk.minor, stats: pick(disk) }));
  const tables = { io_service_bytes: table(({ bytes }) => bytes), io_serviced: table(({ operations }) => operations) };
  return { ...(disks.length > 0 && tables), psi: io?.psi ?? UNKNOWN };
}

const NO_INTERFACE: InterfaceUsage = {
  name: "",
  rxBytes: 0,
  rxPackets: 0,
  rxErrors: 0,
  rxDropped: 0,
  txBytes: 0,
  txPackets: 0,
  txErrors: 0,
  txDropped: 0,
};

function interfacesOf({ network }: CgroupRow): Json {
  return network.length === 0 ? {} : { interfaces: network.map(interfaceStats) };
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

/** A filesystem in the shape of 1.x and 2.0. */
function filesystemStats({ device, type, space, activity }: MountedFilesystem): Json {
  return {
    device,
    type: shownType(type),
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

/** A filesystem of the machine; durations in nanoseconds. The counters are in a field of that odd name. */
function machineFilesystem({ device, type, space, activity }: MountedFilesystem): Json {
  const nanos = (ms: number | undefined): number => (ms ?? 0) * 1e6;
  return {
    device,
    type: shownType(type),
    capacity: space.capacityBytes,
    usage: space.usedBytes,
    available: space.availableBytes,
    inodes_free: space.inodesFree,
    inline: {
      reads_completed: activity?.reads ?? 0,
      reads_merged: activity?.readsMerged ?? 0,
      sectors_read: activity?.sectorsRead ?? 0,
      read_duration: nanos(activity?.readMs),
      writes_completed: activity?.writes ?? 0,
      writes_merged: activity?.writesMerged ?? 0,
      sectors_written: activity?.sectorsWritten ?? 0,
      write_duration: nanos(activity?.writeMs),
      io_in_progress: activity?.inProgress ?? 0,
      io_duration: nanos(activity?.ioMs),
      weighted_io_duration: nanos(activity?.weightedMs),
    },
  };
}

function shownType(type: string): string {
  return type === "tmpfs" || type === "zfs" ? type : "vfs";
}
