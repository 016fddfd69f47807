import type { Metrics } from "./metrics.ts";
import { versionInfo } from "./version.ts";

/** Declares version, start time and memory of the process, by the names of Kubernetes and Prometheus. */
export function declareProcessMetrics(metrics: Metrics, version: string): void {
  const { major = "", minor = "", buildDate = "", nodeVersion = "", platform = "" } = versionInfo();
  const labels = ["major", "minor", "git_version", "build_date", "compiler", "platform"];
  const values = [major, minor, version, buildDate, `node ${nodeVersion}`, platform];
  metrics.gaugeFrom("kubernetes_build_info", "Version of the program; always 1.", {
    labels,
    values: () => [[values, 1]],
  });
  metrics.gaugeFrom("process_start_time_seconds", "Start time of the process as Unix time.", {
    values: () => [[[], performance.timeOrigin / 1000]],
  });
  metrics.gaugeFrom("process_resident_memory_bytes", "Resident memory of the process.", {
    values: () => [[[], process.memoryUsage.rss()]],
  });
}
