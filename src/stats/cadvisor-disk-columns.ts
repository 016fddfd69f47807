import type { BlockDeviceUsage, DiskActivity, FilesystemSpace } from "../model/usage.ts";
import type { Column } from "./cgroup-column.ts";
import type { CgroupRow } from "./cgroup-rows.ts";
import { labelText, type MetricFamily } from "./exposition.ts";

type Type = MetricFamily["type"];

/** Of mounted filesystems: only the root cgroup has them. */
function space(name: string, help: string, value: (of: FilesystemSpace) => number): Column {
  return {
    name: `container_fs_${name}`,
    type: "gauge",
    help,
    each: ({ filesystems }, add) => {
      for (const one of filesystems) add(value(one.space), labelText({ device: one.device }));
    },
  };
}

/** Of block devices that a cgroup used, and of those below the filesystems of the root cgroup; each device once. */
function activity(
  [name, help, type = "counter"]: readonly [string, string, Type?],
  used: ((of: BlockDeviceUsage) => number | undefined) | undefined,
  done?: (of: DiskActivity) => number,
): Column {
  return {
    name: `container_fs_${name}`,
    type,
    help,
    each: ({ details, filesystems }, add) => {
      const seen = new Set<string>();
      for (const disk of details.disks) {
        const value = used?.(disk);
        if (value === undefined || seen.has(disk.device)) continue;
        seen.add(disk.device);
        add(value, labelText({ device: disk.device }));
      }
      for (const { device, activity: of } of filesystems) {
        if (done === undefined || seen.has(device)) continue;
        add(of === undefined ? 0 : done(of), labelText({ device }));
      }
    },
  };
}

const seconds = (ms: number): number => ms / 1000;
const cost = (pick: (of: NonNullable<BlockDeviceUsage["cost"]>) => number) => (of: BlockDeviceUsage) =>
  of.cost && pick(of.cost) / 1e6;

const BLKIO: Column = {
  name: "container_blkio_device_usage_total",
  type: "counter",
  help: "Blkio Device bytes usage",
  each: ({ details }: CgroupRow, add) => {
    for (const { device, major, minor, bytes } of details.disks) {
      for (const [operation, value] of Object.entries(bytes))
        add(value, labelText({ device, major, minor, operation }));
    }
  },
};

/** The families of disks and filesystems. */
export const BLOCK_COLUMNS: readonly Column[] = [
  BLKIO,
  space("inodes_free", "Number of available Inodes", (of) => of.inodesFree),
  space("inodes_total", "Number of Inodes", (of) => of.inodes),
  activity(
    ["io_cost_indebt_seconds_total", "Cumulative IOCost debt in seconds"],
    cost((of) => of.indebt),
  ),
  activity(
    ["io_cost_indelay_seconds_total", "Cumulative IOCost delay in seconds"],
    cost((of) => of.indelay),
  ),
  activity(
    ["io_cost_usage_seconds_total", "Cumulative IOCost usage in seconds"],
    cost((of) => of.usage),
  ),
  activity(
    ["io_cost_wait_seconds_total", "Cumulative IOCost wait in seconds"],
    cost((of) => of.wait),
  ),
  activity(["io_current", "Number of I/Os currently in progress", "gauge"], undefined, (of) => of.inProgress),
  activity(["io_time_seconds_total", "Cumulative count of seconds spent doing I/Os"], undefined, (of) =>
    seconds(of.ioMs),
  ),
  activity(["io_time_weighted_seconds_total", "Cumulative weighted I/O time in seconds"], undefined, (of) =>
    seconds(of.weightedMs),
  ),
  space(
    "limit_bytes",
    "Number of bytes that can be consumed by the container on this filesystem.",
    (of) => of.capacityBytes,
  ),
  activity(["read_seconds_total", "Cumulative count of seconds spent reading"], undefined, (of) => seconds(of.readMs)),
  activity(["reads_bytes_total", "Cumulative count of bytes read"], ({ bytes }) => bytes["Read"] ?? 0),
  activity(["reads_merged_total", "Cumulative count of reads merged"], undefined, (of) => of.readsMerged),
  activity(
    ["reads_total", "Cumulative count of reads completed"],
    ({ operations }) => operations["Read"] ?? 0,
    (of) => of.reads,
  ),
  activity(["sector_reads_total", "Cumulative count of sector reads completed"], undefined, (of) => of.sectorsRead),
  activity(
    ["sector_writes_total", "Cumulative count of sector writes completed"],
    undefined,
    (of) => of.sectorsWritten,
  ),
  space("usage_bytes", "Number of bytes that are consumed by the container on this filesystem.", (of) => of.usedBytes),
  activity(["write_seconds_total", "Cumulative count of seconds spent writing"], undefined, (of) =>
    seconds(of.writeMs),
  ),
  activity(["writes_bytes_total", "Cumulative count of bytes written"], ({ bytes }) => bytes["Write"] ?? 0),
  activity(["writes_merged_total", "Cumulative count of writes merged"], undefined, (of) => of.writesMerged),
  activity(
    ["writes_total", "Cumulative count of writes completed"],
    ({ operations }) => operations["Write"] ?? 0,
    (of) => of.writes,
  ),
];
