export { MirrorPods, type MirrorSource } from "./mirror-pods.ts";
export { type StatusSource, StatusWriter } from "./status-writer.ts";
