export { type ControllersDeps, composeControllers } from "./compose.ts";
export type { VolumeDirectories } from "./volume-directories.ts";
