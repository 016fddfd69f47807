import type { Metrics } from "../lib/metrics.ts";

/** Callbacks of the puller for metrics. */
export interface ImageCounters {
  /** A container needs an image: whether it is present and whether a pull is required; undefined if not known. */
  asked(request: {
    readonly isPresent: boolean | undefined;
    readonly policy: string;
    readonly isRequired: boolean | undefined;
  }): void;
  /** An image of this size was pulled; the time includes waiting, as in Kubernetes. */
  pulled(tookMs: number, sizeBytes: number): void;
}

/** Seconds, as in Kubernetes: a pull may take an hour. */
const PULL_BUCKETS = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];
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

/** Returns the size label of an image; one of unknown size has its own. Pure. */
export function sizeClass(bytes: number): string {
  if (bytes === 0) return "N/A";
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
  const word = (value: boolean | undefined): string => (value === undefined ? "unknown" : String(value));
  return {
    asked: ({ isPresent, policy, isRequired }) =>
      requests.inc([word(isPresent), policy.toLowerCase(), word(isRequired)]),
    pulled: (tookMs, sizeBytes) => duration.observe(tookMs / 1000, [sizeClass(sizeBytes)]),
  };
}

/** Declares the metrics of the records of pulled images; returns the callbacks for them. */
export function accessMetrics(metrics: Metrics): {
  counted(kind: "intents" | "records", count: number): void;
  checked(result: string): void;
} {
  const gauges = {
    intents: metrics.gauge("kubelet_imagemanager_ondisk_pullintents", "Number of ImagePullIntents stored on disk."),
    records: metrics.gauge("kubelet_imagemanager_ondisk_pulledrecords", "Number of ImagePulledRecords stored on disk."),
  };
  const checks = metrics.counter(
    "kubelet_imagemanager_image_mustpull_checks_total",
    "Number of checks whether credentials must be verified again for an image on the node, by result.",
    ["result"],
  );
  return { counted: (kind, count) => gauges[kind].set(count), checked: (result) => checks.inc([result]) };
}

/** Declares the metrics of credential providers; returns the callbacks for them. */
export function providerMetrics(metrics: Metrics): {
  ran(plugin: string, tookMs: number, isOk: boolean): void;
  loaded(hash: string): void;
} {
  const labels = ["plugin_name"];
  const errors = metrics.counter(
    "kubelet_credential_provider_plugin_errors_total",
    "Number of errors from credential provider plugins.",
    labels,
  );
  // The name has no unit, as in Kubernetes.
  const duration = metrics.histogram(
    "kubelet_credential_provider_plugin_duration",
    "Duration in seconds of the runs of credential provider plugins.",
    labels,
  );
  const info = metrics.gauge(
    "kubelet_credential_provider_config_info",
    "Hash of the loaded credential provider configuration.",
    ["hash"],
  );
  return {
    ran: (plugin, tookMs, isOk) => {
      duration.observe(tookMs / 1000, [plugin]);
      if (!isOk) errors.inc([plugin]);
    },
    loaded: (hash) => info.set(1, [hash]),
  };
}
