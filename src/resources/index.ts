export type { CgroupDriver, CgroupOptions } from "./cgroup-names.ts";
export { measuredCgroups } from "./measured-cgroups.ts";
export { type CgroupHost, type LimitRules, PodCgroups } from "./pod-cgroups.ts";
