export { composeProbes } from "./compose.ts";
export { recordFiles } from "./record-files.ts";
export type { RecordFiles } from "./records.ts";
export { probeHooks } from "./report.ts";
export { type ProbeHooks, ProbeScheduler } from "./scheduler.ts";
