import type { Metrics } from "../lib/metrics.ts";

/** Callbacks of the puller for metrics. */
export interface ImageCounters {
  /** A container needs an image: whether it is present (undefined if not inspected), and whether a pull is required. */
  asked(request: {
    readonly isPresent: boolean | undefined;
    readonly policy: string;
    readonly isRequired: boolean;
  }): void;
  /** An image of this size was pulled; the time includes waiting, as in Kubernetes. */
  pulled(tookMs: number, sizeBytes: number): void;
}

/** Seconds, as in Kubernetes: a pull may take an hour. */
const PULL_BUCKETS = [1, 5, 10, 20, 30, 60, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600];
const MB = 1024 * 1024;
const GB = 1024 * MB;
/** Size labels with their upper bounds, as in Kubernetes. */
const SIZES: readonly (readonly [number, string])[] = [
  ...([
    [10 * MB, "0-10MB"],
    [100 * MB, "10MB-100MB"],
    [500 * MB, "100MB-500MB"],
    [GB, "500MB-1GB"],
  ] as const),
  ...([
    [5 * GB, "1GB-5GB"],
    [10 * GB, "5GB-10GB"],
    [20 * GB, "10GB-20GB"],
    [30 * GB, "20GB-30GB"],
  ] as const),
  ...([
    [40 * GB, "30GB-40GB"],
    [60 * GB, "40GB-60GB"],
    [100 * GB, "60GB-100GB"],
  ] as const),
];

/** Returns the size label of an image. Pure. */
export function sizeClass(bytes: number): string {
  return SIZES.find(([bound]) => bytes <= bound)?.[1] ?? "GT100GB";
}

/** Declares the metrics of images and their pulls; returns the callbacks for the puller. */
export function imageMetrics(metrics: Metrics): ImageCounters {
  const requests = metrics.counter(
    "kubelet_image_manager_ensure_image_requests_total",
    "Number of ensure-image requests by local presence, pull policy and whether a pull was required.",
    ["present_locally", "pull_policy", "pull_required"],
  );
  const duration = metrics.histogram(
    "kubelet_image_pull_duration_seconds",
    "Duration in seconds to pull an image, by image size.",
    { labels: ["image_size_in_bytes"], buckets: PULL_BUCKETS },
  );
  return {
    asked: ({ isPresent, policy, isRequired }) =>
      requests.inc([isPresent === undefined ? "unknown" : String(isPresent), policy.toLowerCase(), String(isRequired)]),
    pulled: (tookMs, sizeBytes) => duration.observe(tookMs / 1000, [sizeClass(sizeBytes)]),
  };
}
