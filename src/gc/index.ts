export { type ComposeGcDeps, composeGc, type GarbageCollection, type GcPool } from "./compose.ts";
