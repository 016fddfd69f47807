import type { Metrics } from "../../lib/metrics.ts";

/** Counts what the CPU policy does. */
export interface CpuCounters {
  /** A container asked for CPUs of its own. */
  requested(): void;
  failed(): void;
}

/** What the gauges show at a scrape. */
export interface CpuReadings {
  /** Millicores. */
  sharedPool(): number;
  /** CPUs that containers have for themselves, by NUMA node. */
  exclusive(): ReadonlyMap<number, number>;
}

/** Declares the metrics of the CPU policy. */
export function cpuMetrics(metrics: Metrics, read: CpuReadings): CpuCounters {
  const requests = metrics.counter(
    "kubelet_cpu_manager_pinning_requests_total",
    "Allocations of CPUs to single containers that were asked for.",
  );
  const errors = metrics.counter(
    "kubelet_cpu_manager_pinning_errors_total",
    "Allocations of CPUs to single containers that failed.",
  );
  const total = (): number => [...read.exclusive().values()].reduce((a, b) => a + b, 0);
  metrics.gaugeFrom(
    "kubelet_cpu_manager_shared_pool_size_millicores",
    "Size of the CPU pool of containers without CPUs of their own, in millicores.",
    { values: () => [[[], read.sharedPool()]] },
  );
  metrics.gaugeFrom(
    "kubelet_cpu_manager_exclusive_cpu_allocation_count",
    "CPUs that single containers have for themselves.",
    { values: () => [[[], total()]] },
  );
  metrics.gaugeFrom("kubelet_cpu_manager_allocation_per_numa", "CPUs that single containers have, by NUMA node.", {
    labels: ["numa_node"],
    values: () => [...read.exclusive()].map(([node, count]) => [[String(node)], count] as const),
  });
  return { requested: () => requests.inc(), failed: () => errors.inc() };
}
