import type { Metrics } from "../lib/metrics.ts";
import type { RequestedMemory } from "./class-values.ts";

/** Declares how much memory of pods is protected, by the names of Kubernetes. */
export function memoryQosMetrics(metrics: Metrics, protectedMemory: () => RequestedMemory): void {
  const value = (of: keyof RequestedMemory) => ({ values: () => [[[], protectedMemory()[of]]] as const });
  metrics.gaugeFrom(
    "kubelet_memory_qos_node_memory_min_bytes",
    "Bytes of memory.min of guaranteed pods, which the kernel never reclaims.",
    value("guaranteed"),
  );
  metrics.gaugeFrom(
    "kubelet_memory_qos_node_memory_low_bytes",
    "Bytes of memory.low of burstable pods, which the kernel reclaims last.",
    value("burstable"),
  );
}
