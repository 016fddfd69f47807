import type { Metrics } from "../lib/metrics.ts";

/** What is allocated: of the node to a container, or of the node to a whole pod. */
export type AllocationSource = "node" | "pod";

/** Counts allocations of one resource as Kubernetes does with the gate PodLevelResourceManagers. */
export interface AllocationCounters {
  allocated(source: AllocationSource): void;
  failed(source: AllocationSource): void;
  /** A container got resources of the node or of its pod for itself, or shares those of its pod. */
  assigned(kind: "node_exclusive" | "pod_exclusive" | "pod_shared"): void;
}

const UNCOUNTED: AllocationCounters = {
  allocated: () => undefined,
  failed: () => undefined,
  assigned: () => undefined,
};

/** Declares the metrics; without the gate there are none. Returns the counters of each resource. */
export function allocationMetrics(
  metrics: Metrics,
  { managesPodLevel }: { readonly managesPodLevel: boolean },
): (resource: "cpu" | "memory") => AllocationCounters {
  if (!managesPodLevel) return () => UNCOUNTED;
  const allocations = metrics.counter(
    "resource_manager_allocations_total",
    "Allocations of CPUs or memory, by what they were made for.",
    ["resource_name", "source"],
  );
  const errors = metrics.counter(
    "resource_manager_allocation_errors_total",
    "Allocations of CPUs or memory that failed, by what they were to be made for.",
    ["resource_name", "source"],
  );
  const assignments = metrics.counter(
    "resource_manager_container_assignments",
    "Containers with CPUs or memory of their own or of their pod, by kind.",
    ["resource_name", "assignment_type"],
  );
  return (resource) => ({
    allocated: (source) => allocations.inc([resource, source]),
    failed: (source) => errors.inc([resource, source]),
    assigned: (kind) => assignments.inc([resource, kind]),
  });
}
