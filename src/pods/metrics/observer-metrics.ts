import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { Metrics } from "../../lib/metrics.ts";
import type { ObserverHooks } from "../observe/observe.ts";

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

export interface ObserverMetricsDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: { readonly eventSource: string };
}

/** Declares the metrics of the observer; returns its callbacks. */
export function observerMetrics(
  deps: ObserverMetricsDeps,
): Required<Pick<ObserverHooks, "relisted" | "read" | "missed">> {
  const { metrics, clock, log, runtime } = deps;
  const missed = metrics.counter(
    "kubelet_ts_audit_missed_total",
    "Number of changes that a relist found and no event had reported.",
  );
  return {
    relisted: relistMetrics(metrics, clock),
    read: readMetrics(metrics),
    missed: (uid) => {
      missed.inc();
      log.warn("Relist found a change that no event had reported", { podUID: uid, source: runtime.eventSource });
    },
  };
}
