export { type CgroupDriver, type CgroupOptions, classCgroups } from "./cgroup-names.ts";
export type { LimitRules } from "./class-values.ts";
export { composeResources, type ResourceHost, refreshCgroups } from "./compose.ts";
export { checkDriver } from "./driver-check.ts";
export { type CgroupHost, PodCgroups } from "./pod-cgroups.ts";
