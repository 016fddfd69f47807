export type { CgroupDriver, CgroupOptions } from "./cgroup-names.ts";
export { PodCgroups } from "./pod-cgroups.ts";
