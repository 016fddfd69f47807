import type { VolumeKind } from "../kind.ts";
import { configMap } from "./config-map.ts";
import { downwardApi } from "./downward-api.ts";
import { emptyDir } from "./empty-dir.ts";
import { hostPath } from "./host-path.ts";
import { image } from "./image.ts";
import { local, localBlock } from "./local.ts";
import { nfs } from "./nfs.ts";
import { persistentVolumeClaim } from "./persistent-volume-claim.ts";
import { projected } from "./projected.ts";
import { secret } from "./secret.ts";

/** Every kind of volume that pods and claims may have. */
export const VOLUME_KINDS: readonly VolumeKind[] = [
  hostPath,
  emptyDir,
  configMap,
  secret,
  downwardApi,
  projected,
  image,
  persistentVolumeClaim,
  local,
  localBlock,
  nfs,
];
