import type { Metrics } from "../lib/metrics.ts";
import type { ImageRemoveReason } from "../model/image-report.ts";

/** Callbacks of garbage collection for metrics. */
export interface GcCounters {
  imageRemoved(reason: ImageRemoveReason, bytes: number): void;
}

/** Declares the metrics of garbage collection; returns the callbacks. */
export function gcMetrics(metrics: Metrics): GcCounters {
  const images = metrics.counter(
    "kubelet_image_garbage_collected_total",
    "Number of images that were garbage collected, by reason: their age, or space on the disk.",
    ["reason"],
  );
  const bytes = metrics.counter(
    "kubelet_ts_image_garbage_collected_bytes_total",
    "Bytes of the images that were garbage collected, by the sizes that the runtime reports.",
    ["reason"],
  );
  return {
    imageRemoved: (reason, size) => {
      images.inc([reason]);
      bytes.inc([reason], size);
    },
  };
}
