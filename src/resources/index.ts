export { type CgroupDriver, type CgroupOptions, classCgroups } from "./cgroup-names.ts";
export { composeResources, type ResourceHost, refreshCgroups } from "./compose.ts";
export { type CgroupHost, type LimitRules, PodCgroups } from "./pod-cgroups.ts";
