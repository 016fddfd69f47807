import type { Metrics } from "../lib/metrics.ts";

/** Whose resources were to be aligned. */
export type TopologyScope = "container" | "pod";

/** What resources are aligned to. */
export type Boundary = "numa_node" | "physical_cpu" | "uncore_cache";

/** Counts admissions by topology. */
export interface TopologyCounters {
  admission(took: { readonly ms: number }): void;
  /** An admission that was rejected. */
  rejected(): void;
  aligned(scope: TopologyScope, boundary: Boundary): void;
  misaligned(scope: TopologyScope, boundary: Boundary): void;
  /** Shows a count that is still zero. */
  declareAligned(scope: TopologyScope, boundary: Boundary): void;
}

/** 0.05 ms, doubled 14 times. */
const BUCKETS_MS = Array.from({ length: 15 }, (_, power) => 0.05 * 2 ** power);

/** Declares the metrics about alignment. */
export function topologyMetrics(metrics: Metrics): TopologyCounters {
  const labels = ["scope", "boundary"];
  const requests = metrics.counter(
    "kubelet_topology_manager_admission_requests_total",
    "Admissions where resources have to be aligned.",
  );
  const errors = metrics.counter(
    "kubelet_topology_manager_admission_errors_total",
    "Admissions that failed because resources could not be aligned.",
  );
  const duration = metrics.histogram(
    "kubelet_topology_manager_admission_duration_ms",
    "Duration of admissions where resources have to be aligned, in milliseconds.",
    { buckets: BUCKETS_MS },
  );
  const aligned = metrics.counter(
    "kubelet_container_aligned_compute_resources_count",
    "Allocations of aligned resources to containers, by alignment.",
    labels,
  );
  const misaligned = metrics.counter(
    "kubelet_container_aligned_compute_resources_failure_count",
    "Failures to allocate aligned resources to containers, by alignment.",
    labels,
  );
  return {
    admission: ({ ms }) => {
      requests.inc();
      duration.observe(ms);
    },
    rejected: () => errors.inc(),
    aligned: (scope, boundary) => aligned.inc([scope, boundary]),
    misaligned: (scope, boundary) => misaligned.inc([scope, boundary]),
    declareAligned: (scope, boundary) => {
      aligned.inc([scope, boundary], 0);
      // Caches are a preference: not to be aligned to them is no failure.
      if (boundary !== "uncore_cache") misaligned.inc([scope, boundary], 0);
    },
  };
}
