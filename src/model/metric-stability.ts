/** How long a metric of Kubernetes is kept, as the beginning of its help tells. */
export type MetricStability = "ALPHA" | "BETA" | "STABLE";

const BETA = new Set([
  "kubernetes_build_info",
  "kubernetes_feature_enabled",
  "kubelet_image_volume_mounted_errors_total",
  "kubelet_image_volume_mounted_succeed_total",
  "kubelet_image_volume_requested_total",
  "prober_probe_total",
]);
/** Of the process, as clients of Prometheus for all languages have them: these have no level. */
const OF_PROCESS = /^process_/;

/** The help of a metric with its level in Kubernetes 1.36 before it. Names that Kubernetes does not have are ALPHA. Pure. */
export function withStability(name: string, help: string): string {
  if (OF_PROCESS.test(name)) return help;
  const level: MetricStability = BETA.has(name) ? "BETA" : "ALPHA";
  return `[${level}] ${help}`;
}
