/** Usage of the node and its pods in their newest sample, for `kubelet top` and the page. */
export interface NodeUsageReport {
  readonly node: NodeUsageLine;
  readonly cores: number;
  readonly memoryBytes: number;
  /** Those with the most CPU usage first. */
  readonly pods: readonly PodUsageLine[];
}

export interface UsageLine {
  /** When it was measured, in wall-clock milliseconds. */
  readonly at: number;
  /** Billionths of a core; absent in the first sample. */
  readonly nanoCores?: number;
  readonly workingSetBytes: number;
  /** Absent if unlimited. */
  readonly memoryLimitBytes?: number;
  /** Tasks of the cgroup and below; absent if they are not counted. */
  readonly tasks?: number;
  /** Share of the last ten seconds in which some tasks were stalled, in percent; absent without PSI. */
  readonly pressure?: UsagePressure;
}

export interface UsagePressure {
  readonly cpu?: number;
  readonly memory?: number;
  readonly io?: number;
}

/** Bytes of all network interfaces together since they were made. */
export interface NetworkCounters {
  readonly rxBytes: number;
  readonly txBytes: number;
}

export interface DiskSpace {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

export interface NodeUsageLine extends UsageLine {
  readonly network: NetworkCounters;
  readonly swap: { readonly totalBytes: number; readonly freeBytes: number };
  /** The filesystem of the agent's root directory. */
  readonly disk?: DiskSpace;
  /** The filesystem of images. */
  readonly imageDisk?: DiskSpace;
  /** Bytes of all disks since the machine was started; absent if the kernel does not count them. */
  readonly diskTraffic?: { readonly readBytes: number; readonly writtenBytes: number };
}

export interface PodUsageLine extends UsageLine {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Absent in the host's network. */
  readonly network?: NetworkCounters;
  readonly containers: readonly ContainerUsageLine[];
}

export interface ContainerUsageLine extends UsageLine {
  readonly name: string;
}

/** The usage of the last minutes: of the node, and the CPU usage of pods by UID, in billionths of a core. */
export interface UsageHistoryReport {
  readonly node: readonly NodeUsageLine[];
  readonly pods: Readonly<Record<string, readonly number[]>>;
}

/** The usage of a pod's containers by their names in the last minutes. */
export interface PodUsageHistory {
  /** Wall-clock milliseconds. */
  readonly at: readonly number[];
  readonly containers: Readonly<
    Record<string, { readonly nanoCores: readonly number[]; readonly workingSetBytes: readonly number[] }>
  >;
}
