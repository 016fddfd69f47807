import type { MemoryDetails, PressureStall, ProcessCounts } from "../model/usage.ts";
import { BLOCK_COLUMNS } from "./cadvisor-disk-columns.ts";
import type { Column } from "./cgroup-column.ts";
import type { CgroupRow } from "./cgroup-rows.ts";
import { labelText, type MetricFamily } from "./exposition.ts";

type Value = (row: CgroupRow) => number | undefined;
type Type = MetricFamily["type"];

const NANOS = 1e9;
const MICROS = 1e6;

function column(type: Type, value: Value, [name, help, time]: readonly [string, string, Column["time"]?]): Column {
  const each: Column["each"] = (row, add) => {
    const found = value(row);
    if (found !== undefined) add(found);
  };
  return { name: `container_${name}`, type, help, each, ...(time && { time }) };
}

const counter = (name: string, help: string, value: Value): Column => column("counter", value, [name, help]);
const gauge = (name: string, help: string, value: Value): Column => column("gauge", value, [name, help]);
const spec = (name: string, help: string, value: Value): Column => column("gauge", value, [name, help, "none"]);

/** Only of a cgroup with a CPU quota. */
const cfs = (name: string, help: string, value: Value): Column =>
  counter(`cpu_cfs_${name}`, help, (row) => (row.details.cpu?.quota === undefined ? undefined : value(row)));

const CPU: readonly Column[] = [
  cfs("burst_periods_total", "Number of periods when burst occurs.", ({ details }) => details.cpu?.burstPeriods),
  cfs(
    "burst_seconds_total",
    "Total time duration the container has been bursted.",
    ({ details: { cpu } }) => cpu && cpu.burstNanos / NANOS,
  ),
  cfs("periods_total", "Number of elapsed enforcement period intervals.", ({ details }) => details.cpu?.periods),
  cfs("throttled_periods_total", "Number of throttled period intervals.", (row) => row.details.cpu?.throttledPeriods),
  cfs(
    "throttled_seconds_total",
    "Total time duration the container has been throttled.",
    ({ details: { cpu } }) => cpu && cpu.throttledNanos / NANOS,
  ),
  // The original does not measure the load either: without its load reader they are 0.
  gauge("cpu_load_average_10s", "Value of container cpu load average over the last 10 seconds.", () => 0),
  gauge("cpu_load_d_average_10s", "Value of container cpu load.d average over the last 10 seconds.", () => 0),
  counter(
    "cpu_system_seconds_total",
    "Cumulative system cpu time consumed in seconds.",
    ({ details: { cpu } }) => cpu && cpu.systemNanos / NANOS,
  ),
  {
    name: "container_cpu_usage_seconds_total",
    type: "counter",
    help: "Cumulative cpu time consumed in seconds.",
    each: ({ usage: { cpu } }, add) => {
      if (cpu !== undefined && cpu.usageNanos > 0) add(cpu.usageNanos / NANOS, 'cpu="total"');
    },
  },
  counter(
    "cpu_user_seconds_total",
    "Cumulative user cpu time consumed in seconds.",
    ({ details: { cpu } }) => cpu && cpu.userNanos / NANOS,
  ),
];

const processes =
  (pick: (counts: ProcessCounts) => number): Value =>
  ({ details }) =>
    details.processes && pick(details.processes);

const PROCESSES: readonly Column[] = [
  gauge(
    "file_descriptors",
    "Number of open file descriptors for the container.",
    processes((all) => all.descriptors),
  ),
  gauge(
    "processes",
    "Number of processes running inside the container.",
    processes((all) => all.processes),
  ),
  gauge(
    "sockets",
    "Number of open sockets for the container.",
    processes((all) => all.sockets),
  ),
  {
    name: "container_tasks_state",
    type: "gauge",
    help: "Number of tasks in given state",
    each: (_, add) => {
      for (const state of ["iowaiting", "running", "sleeping", "stopped", "uninterruptible"])
        add(0, `state="${state}"`);
    },
  },
  gauge(
    "threads",
    "Number of threads running inside the container",
    processes((all) => all.threads),
  ),
  gauge(
    "threads_max",
    "Maximum number of threads allowed inside the container, infinity if value is zero",
    processes((all) => all.mostThreads),
  ),
  {
    name: "container_ulimits_soft",
    type: "gauge",
    help: "Soft ulimit values for the container root process. Unlimited if -1, except priority and nice",
    each: ({ kind, details: { processes: all } }, add) => {
      if (kind !== "raw" && all?.openFiles !== undefined) add(all.openFiles, 'ulimit="max_open_files"');
    },
  },
];

const memory =
  (pick: (of: MemoryDetails) => number): Value =>
  ({ details }) =>
    details.memory && pick(details.memory);

const MEMORY: readonly Column[] = [
  gauge(
    "memory_cache",
    "Number of bytes of page cache memory.",
    memory((of) => of.cache),
  ),
  counter(
    "memory_failcnt",
    "Number of memory usage hits limits",
    memory((of) => of.failures),
  ),
  {
    name: "container_memory_failures_total",
    type: "counter",
    help: "Cumulative count of memory allocation failures.",
    each: ({ usage: { memory: of } }, add) => {
      if (of === undefined) return;
      for (const [scope, faults] of [["container", of.own ?? of] as const, ["hierarchy", of] as const]) {
        add(faults.pageFaults, `failure_type="pgfault",scope="${scope}"`);
        add(faults.majorPageFaults, `failure_type="pgmajfault",scope="${scope}"`);
      }
    },
  },
  gauge(
    "memory_kernel_usage",
    "Size of kernel memory allocated in bytes.",
    memory((of) => of.kernel),
  ),
  gauge(
    "memory_mapped_file",
    "Size of memory mapped files in bytes.",
    memory((of) => of.mappedFile),
  ),
  gauge(
    "memory_max_usage_bytes",
    "Maximum memory usage recorded in bytes",
    memory((of) => of.peak),
  ),
  gauge("memory_rss", "Size of RSS in bytes.", ({ usage }) => usage.memory?.rss),
  gauge("memory_swap", "Container swap usage in bytes.", ({ usage }) => usage.memory?.swap),
  gauge(
    "memory_total_active_file_bytes",
    "Current total active file in bytes.",
    memory((of) => of.activeFile),
  ),
  gauge(
    "memory_total_inactive_file_bytes",
    "Current total inactive file in bytes.",
    memory((of) => of.inactiveFile),
  ),
  gauge(
    "memory_usage_bytes",
    "Current memory usage in bytes, including all memory regardless of when it was accessed",
    ({ usage }) => usage.memory?.usage,
  ),
  gauge("memory_working_set_bytes", "Current working set in bytes.", ({ usage }) => usage.memory?.workingSet),
];

const DIRECTIONS = [
  ["receive", "receiving", "received", "rx"],
  ["transmit", "transmitting", "transmitted", "tx"],
] as const;

const NETWORK: readonly Column[] = DIRECTIONS.flatMap(([verb, doing, done, prefix]) => {
  const counts = [
    ["bytes", `Cumulative count of bytes ${done}`, `${prefix}Bytes`],
    ["errors", `Cumulative count of errors encountered while ${doing}`, `${prefix}Errors`],
    ["packets_dropped", `Cumulative count of packets dropped while ${doing}`, `${prefix}Dropped`],
    ["packets", `Cumulative count of packets ${done}`, `${prefix}Packets`],
  ] as const;
  return counts.map(([what, help, field]): Column => {
    return {
      name: `container_network_${verb}_${what}_total`,
      type: "counter",
      help,
      each: ({ network }, add) => {
        for (const one of network) add(one[field], labelText({ interface: one.name }));
      },
    };
  });
});

const RESOURCES: readonly (readonly [string, string, (row: CgroupRow) => PressureStall | undefined])[] = [
  ["cpu", "CPU", ({ usage }) => usage.cpu?.psi],
  ["io", "IO", ({ usage }) => usage.io?.psi],
  ["memory", "memory", ({ usage }) => usage.memory?.psi],
];

const PRESSURE: readonly Column[] = RESOURCES.flatMap(([name, word, psi]) => [
  counter(
    `pressure_${name}_stalled_seconds_total`,
    `Total time duration no tasks in the container could make progress due to ${word} congestion.`,
    (row) => total(psi(row)?.full),
  ),
  counter(
    `pressure_${name}_waiting_seconds_total`,
    `Total time duration tasks in the container have waited due to ${word} congestion.`,
    (row) => total(psi(row)?.some),
  ),
]);

function total(times: PressureStall["some"] | undefined): number | undefined {
  return times && times.total / MICROS;
}

const SPEC: readonly Column[] = [
  spec("spec_cpu_period", "CPU period of the container.", ({ details }) => details.cpu?.period),
  spec("spec_cpu_quota", "CPU quota of the container.", ({ details }) => details.cpu?.quota),
  spec("spec_cpu_shares", "CPU share of the container.", ({ details }) => details.cpu?.shares),
  spec(
    "spec_memory_limit_bytes",
    "Memory limit for the container.",
    memory((of) => of.limit),
  ),
  spec(
    "spec_memory_reservation_limit_bytes",
    "Memory reservation limit for the container.",
    memory((of) => of.reservation),
  ),
  spec(
    "spec_memory_swap_limit_bytes",
    "Memory swap limit for the container.",
    memory((of) => of.swapLimit),
  ),
  spec("start_time_seconds", "Start time of the container since unix epoch in seconds.", ({ startedAt }) =>
    Math.floor(startedAt / 1000),
  ),
];

/** Every family of metrics of cgroups that the kubelet has from cAdvisor. */
export const CONTAINER_COLUMNS: readonly Column[] = [
  ...CPU,
  ...BLOCK_COLUMNS,
  gauge("health_state", "The result of the container's health check", () => -1),
  {
    name: "container_last_seen",
    type: "gauge",
    help: "Last time a container was seen by the exporter",
    time: "scrape",
    each: (_, add, now) => add(Math.floor(now / 1000)),
  },
  ...MEMORY,
  ...NETWORK,
  counter(
    "oom_events_total",
    "Count of out of memory events observed for the container",
    ({ details }) => details.oomKills,
  ),
  ...PRESSURE,
  ...PROCESSES,
  ...SPEC,
];
