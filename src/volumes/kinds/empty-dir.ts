import type { Pod, Volume } from "../../model/generated/types.ts";
import { parseQuantity, wholeValue } from "../../model/quantity.ts";
import { bytesOf, isLimited, podLimits } from "../../model/resources.ts";
import type { VolumeKind } from "../kind.ts";

/** A directory that lives as long as the pod, on disk or in memory. */
export const emptyDir: VolumeKind = {
  plugin: "kubernetes.io~empty-dir",
  handles: (volume) => volume.emptyDir !== undefined,
  hostPath: ({ directory }) => directory,

  async setUp({ pod, volume, directory }, host) {
    await host.makeDir(directory, 0o777);
    if (volume.emptyDir?.medium !== "Memory" || (await host.isMountPoint(directory))) return;
    const sizeBytes = tmpfsSize(pod, volume);
    await host.mountTmpfs(directory, { mode: 0o777, ...(sizeBytes === undefined ? {} : { sizeBytes }) });
  },

  async tearDown(directory, host) {
    if (await host.isMountPoint(directory)) await host.unmount(directory);
    await host.removeTree(directory);
  },
};

/** The smallest of the volume's limit and the pod's memory limit, if all its containers have one; else undefined. */
function tmpfsSize(pod: Pod, volume: Volume): number | undefined {
  const limit = volume.emptyDir?.sizeLimit;
  const own = limit === undefined ? undefined : wholeValue(parseQuantity(limit));
  const ofPod = isLimited(pod, "memory") ? bytesOf(podLimits(pod), "memory") : undefined;
  const sizes = [own, ofPod].filter((size) => size !== undefined).filter((size) => size > 0);
  return sizes.length === 0 ? undefined : Math.min(...sizes);
}
