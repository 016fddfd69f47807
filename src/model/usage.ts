/** Pressure stall information of the kernel: the share of time in percent, and the total in microseconds. */
export interface StallTimes {
  readonly avg10: number;
  readonly avg60: number;
  readonly avg300: number;
  readonly total: number;
}

/** How long some, or all, tasks of a cgroup (or of the node) were stalled for a resource. */
export interface PressureStall {
  readonly some: StallTimes;
  readonly full: StallTimes;
}

export interface CpuUsage {
  /** Nanoseconds of CPU time since the cgroup was created. */
  readonly usageNanos: number;
  readonly psi?: PressureStall;
}

/** Memory in bytes. */
export interface MemoryUsage {
  readonly usage: number;
  /** Usage without inactive page cache, as cAdvisor defines it. */
  readonly workingSet: number;
  readonly rss: number;
  readonly pageFaults: number;
  readonly majorPageFaults: number;
  /** Faults of the cgroup itself, where the kernel counts those below apart (version 1). */
  readonly own?: { readonly pageFaults: number; readonly majorPageFaults: number };
  /** Absent if unlimited. */
  readonly limit?: number;
  readonly swap: number;
  /** Absent if unlimited. */
  readonly swapLimit?: number;
  readonly psi?: PressureStall;
}

/** Usage of one cgroup; a part is missing if its controller is. */
export interface CgroupUsage {
  readonly cpu?: CpuUsage;
  readonly memory?: MemoryUsage;
  /** Tasks in the cgroup and below. */
  readonly pids?: number;
  /** Processes of the cgroup itself. */
  readonly processes?: number;
  readonly io?: { readonly psi: PressureStall };
}

export interface InterfaceUsage {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
}

/** Space of a mounted filesystem. */
export interface FilesystemSpace {
  /** Identifies the filesystem. */
  readonly device: number;
  readonly capacityBytes: number;
  readonly availableBytes: number;
  readonly usedBytes: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** Space of a volume as its driver counts it. */
export interface VolumeSpace extends FilesystemSpace {
  readonly inodesUsed?: number;
  /** The health that the driver reports, if it does. */
  readonly condition?: { readonly isAbnormal: boolean; readonly message: string };
}

/** How the CPU time of a cgroup was spent, and its limits. Times in nanoseconds. */
export interface CpuDetails {
  readonly userNanos: number;
  readonly systemNanos: number;
  readonly periods: number;
  readonly throttledPeriods: number;
  readonly throttledNanos: number;
  readonly burstPeriods: number;
  readonly burstNanos: number;
  readonly shares: number;
  /** Microseconds; the quota is absent if unlimited. */
  readonly period: number;
  readonly quota?: number;
}

/** What the memory of a cgroup consists of, and its limits, in bytes; a limit of 0 is none. */
export interface MemoryDetails {
  readonly cache: number;
  readonly mappedFile: number;
  readonly activeFile: number;
  readonly inactiveFile: number;
  readonly kernel: number;
  readonly peak: number;
  /** How often a limit was hit. */
  readonly failures: number;
  readonly limit: number;
  readonly swapLimit: number;
  readonly reservation: number;
}

/** Input and output of a cgroup on one block device, by operation (`Read`, `Write`; more in version 1). */
export interface BlockDeviceUsage {
  /** As in /dev; empty if the kernel does not tell. */
  readonly device: string;
  readonly major: number;
  readonly minor: number;
  readonly bytes: Readonly<Record<string, number>>;
  readonly operations: Readonly<Record<string, number>>;
  /** Of the io.cost controller, in microseconds. */
  readonly cost?: { readonly usage: number; readonly wait: number; readonly indebt: number; readonly indelay: number };
}

/** The processes of a cgroup itself, without those of cgroups below. */
export interface ProcessCounts {
  readonly processes: number;
  readonly descriptors: number;
  readonly sockets: number;
  /** Threads in the cgroup and below, and how many there may be; 0 is unlimited. */
  readonly threads: number;
  readonly mostThreads: number;
  /** Soft limit of open files of the first process; -1 is unlimited. */
  readonly openFiles?: number;
}

/** More of a cgroup than eviction and the summary need; read only while somebody asks for it. */
export interface CgroupDetails {
  readonly cpu?: CpuDetails;
  readonly memory?: MemoryDetails;
  readonly disks: readonly BlockDeviceUsage[];
  readonly processes?: ProcessCounts;
  readonly oomKills: number;
}

/** A mounted filesystem of the node, and what its device has done; times in milliseconds. */
export interface MountedFilesystem {
  /** As in the mount table; the mount point for one in memory. */
  readonly device: string;
  readonly type: string;
  readonly mountpoint: string;
  readonly space: FilesystemSpace;
  readonly activity?: DiskActivity;
}

/** Counters of a block device in /proc/diskstats; times in milliseconds. */
export interface DiskActivity {
  readonly reads: number;
  readonly readsMerged: number;
  readonly sectorsRead: number;
  readonly readMs: number;
  readonly writes: number;
  readonly writesMerged: number;
  readonly sectorsWritten: number;
  readonly writeMs: number;
  readonly inProgress: number;
  readonly ioMs: number;
  readonly weightedMs: number;
}
