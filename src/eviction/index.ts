export { composeEviction, type EvictionParts } from "./compose.ts";
export type { PressureCondition } from "./signals.ts";
