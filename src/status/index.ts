export { MirrorPods, type MirrorSource } from "./mirror-pods.ts";
export { statusMetrics } from "./status-metrics.ts";
export { type StatusSource, StatusWriter } from "./status-writer.ts";
