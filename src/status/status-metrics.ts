import type { Metrics } from "../lib/metrics.ts";
import type { Pod } from "../model/generated/types.ts";
import { isMirrorPod } from "../model/pod-facts.ts";

/** Seconds, as in Kubernetes. */
const STATUS_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60];

/** Declares the metrics of mirror pods and status updates; returns the callback for `StatusWriter`. */
export function statusMetrics(metrics: Metrics, onServer: () => Iterable<Pod>): (tookMs: number) => void {
  metrics.gaugeFrom("kubelet_mirror_pods", "Number of mirror pods on the API server.", {
    values: () => [[[], [...onServer()].filter(isMirrorPod).length]],
  });
  const duration = metrics.histogram(
    "kubelet_pod_status_sync_duration_seconds",
    "Duration from a change of a pod's status to its update on the API server.",
    { buckets: STATUS_BUCKETS },
  );
  return (tookMs) => duration.observe(tookMs / 1000);
}
