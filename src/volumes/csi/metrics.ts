import type { CsiCall } from "../../adapters/plugins/csi-client.ts";
import type { Metrics } from "../../lib/metrics.ts";

/** Upper bounds in seconds, as in Kubernetes. */
const BUCKETS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Declares the metrics of what an earlier agent left, by Kubernetes' names; returns the callback for each such volume. */
export function reconstructionMetrics(metrics: Metrics | undefined): (isFailed: boolean) => void {
  const all = metrics?.counter(
    "reconstruct_volume_operations_total",
    "The number of volumes that were attempted to be reconstructed from the operating system during kubelet startup. This includes both successful and failed reconstruction.",
  );
  const failed = metrics?.counter(
    "reconstruct_volume_operations_errors_total",
    "The number of volumes that failed reconstruction from the operating system during kubelet startup.",
  );
  return (isFailed) => {
    all?.inc();
    if (isFailed) failed?.inc();
  };
}

/** Declares the metric of calls to CSI drivers by Kubernetes' name; returns the callback for each call of a driver. */
export function csiCallMetrics(metrics: Metrics | undefined): (driver: string, call: CsiCall) => void {
  const calls = metrics?.histogram(
    "csi_operations_seconds",
    "Container Storage Interface operation duration with gRPC error code status total",
    { labels: ["driver_name", "method_name", "grpc_status_code", "migrated"], buckets: BUCKETS },
  );
  return (driver, { method, tookMs, code, isMigrated }) =>
    calls?.observe(tookMs / 1000, [driver, method, code, String(isMigrated)]);
}
