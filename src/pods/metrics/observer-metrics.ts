import type { Clock } from "../../lib/clock.ts";
import type { Metrics } from "../../lib/metrics.ts";

/** Declares the duration of reading one pod; returns the callback for the observer. */
export function readMetrics(metrics: Metrics): (tookMs: number) => void {
  const duration = metrics.histogram(
    "kubelet_pleg_pod_relist_duration_seconds",
    "Duration of reading one pod from the runtime.",
  );
  return (tookMs) => duration.observe(tookMs / 1000);
}

/** Declares duration and interval of relists; returns the callback for the observer. */
export function relistMetrics(metrics: Metrics, clock: Clock): (tookMs: number) => void {
  const duration = metrics.histogram("kubelet_pleg_relist_duration_seconds", "Duration of a relist.");
  const interval = metrics.histogram("kubelet_pleg_relist_interval_seconds", "Interval between two relists.");
  let last: number | undefined;
  return (tookMs) => {
    const now = clock.now().mono;
    duration.observe(tookMs / 1000);
    if (last !== undefined) interval.observe((now - last) / 1000);
    last = now;
  };
}
