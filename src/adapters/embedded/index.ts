export { EmbeddedError, type EmbeddedErrorCode } from "./embedded-error.ts";
export { EmbeddedRuntime } from "./embedded-runtime.ts";
export type { CommandResult, EmbeddedDeps, EmbeddedHost, MountPoint } from "./host.ts";
export { DEFAULT_STATE_DIR, type EmbeddedOptions } from "./layout.ts";
export { DEMO_IMAGE, LOCAL_IMAGES, PAUSE_IMAGE } from "./local-images.ts";
export { buildOciArchive, type LocalImage } from "./oci-archive.ts";
export { type TearDownResult, tearDown } from "./tear-down.ts";
