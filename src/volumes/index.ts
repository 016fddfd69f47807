export type { PathKind, VolumeHost } from "./kind.ts";
export { PodVolumes } from "./pod-volumes.ts";
