import type { Pod } from "../model/generated/types.ts";
import { podIdentity } from "../model/pod-facts.ts";
import { parseQuantity, wholeValue } from "../model/quantity.ts";
import { directoryName } from "./kind.ts";
import { emptyDir } from "./kinds/empty-dir.ts";
import type { MeteredDirectory } from "./usage-meter.ts";

/** An emptyDir of a pod, and how large it may be. */
export interface MeteredEmptyDir extends MeteredDirectory {
  readonly volume: string;
  /** Bytes; absent without a limit, and for a limit of 0, which is none. */
  readonly sizeLimit?: number;
}

/** Where a pod's emptyDirs lie and what they may hold. Memory is counted by its own filesystem, not by a walk. */
export function meteredEmptyDirs(pod: Pod, rootDir: string): readonly MeteredEmptyDir[] {
  const base = `${rootDir}/pods/${podIdentity(pod).uid}/volumes/${directoryName(emptyDir)}`;
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    if (volume.emptyDir === undefined) return [];
    const { medium = "", sizeLimit } = volume.emptyDir;
    const limit = sizeLimit === undefined ? 0 : wholeValue(parseQuantity(sizeLimit));
    return [
      {
        volume: volume.name,
        path: `${base}/${volume.name}`,
        isFilesystem: medium !== "",
        mayBeCounted: medium === "" && pod.spec.hostUsers === false,
        ...(limit > 0 ? { sizeLimit: limit } : {}),
      },
    ];
  });
}
