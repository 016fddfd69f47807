export { composeStats, type StatsDeps } from "./compose.ts";
export type { Sampler } from "./sampler.ts";
export type { PodSample, SignalSample } from "./samples.ts";
