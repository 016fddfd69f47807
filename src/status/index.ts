export { composePodStatuses, type PodStatusDeps, type PodStatuses } from "./compose.ts";
