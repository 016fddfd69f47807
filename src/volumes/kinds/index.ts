import type { VolumeKind } from "../kind.ts";
import { emptyDir } from "./empty-dir.ts";
import { hostPath } from "./host-path.ts";

/** Every kind of volume that pods may have. */
export const VOLUME_KINDS: readonly VolumeKind[] = [hostPath, emptyDir];
