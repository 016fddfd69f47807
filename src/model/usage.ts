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
  readonly io?: { readonly psi: PressureStall };
}

export interface InterfaceUsage {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxErrors: number;
  readonly txBytes: number;
  readonly txErrors: number;
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
