import type { Clock } from "../lib/clock.ts";
import type { Metrics } from "../lib/metrics.ts";
import type { CgroupHost } from "./pod-cgroups.ts";

/** Declares the cgroup version and the duration of cgroup changes; returns the tree with its calls measured. */
export function measuredCgroups(metrics: Metrics, clock: Clock, of: { tree: CgroupHost; version: number }): CgroupHost {
  metrics.gaugeFrom("kubelet_cgroup_version", "Cgroup version of the host.", {
    values: () => [[[], of.version]],
  });
  const duration = metrics.histogram("kubelet_cgroup_manager_duration_seconds", "Duration of cgroup operations.", [
    "operation_type",
  ]);
  const timed = async <T>(operation: string, work: () => Promise<T>): Promise<T> => {
    const began = clock.now().mono;
    try {
      return await work();
    } finally {
      duration.observe((clock.now().mono - began) / 1000, [operation]);
    }
  };
  const { tree } = of;
  return {
    ensure: (path) => timed("create", () => tree.ensure(path)),
    set: (path, values) => timed("update", () => tree.set(path, values)),
    forget: (path) => timed("destroy", () => tree.forget(path)),
    exists: (path) => tree.exists(path),
    read: (path) => tree.read(path),
    unreclaimable: (path) => tree.unreclaimable(path),
    childrenOf: (path) => tree.childrenOf(path),
    memoryUsage: (path, containerId) => tree.memoryUsage(path, containerId),
  };
}
