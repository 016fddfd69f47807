export { composeProbes } from "./compose.ts";
export { recordFiles } from "./record-files.ts";
export type { RecordFiles } from "./records.ts";
export { type ProbeHooks, ProbeScheduler } from "./scheduler.ts";
export { probeHooks } from "./tell.ts";
