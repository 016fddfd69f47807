import type { Pod, Volume } from "../../model/generated/types.ts";
import { parseQuantity, tryParseQuantity, wholeValue } from "../../model/quantity.ts";
import { bytesOf, isLimited, podLimits, podRequests } from "../../model/resources.ts";
import { unmountAll, type VolumeKind, type VolumeNode } from "../kind.ts";

/** A directory that lives as long as the pod, on disk, in memory or in huge pages. */
export const emptyDir: VolumeKind = {
  plugin: "kubernetes.io/empty-dir",
  handles: (volume) => volume.emptyDir !== undefined,
  isPlain: true,

  async setUp({ pod, volume, directory }, { host, node }) {
    const medium = volume.emptyDir?.medium ?? "";
    const source = { kind: "path", path: directory, readonly: false } as const;
    const ready = { source, isMounted: medium !== "", takesGroup: true };
    const pageSizeBytes = medium.startsWith("HugePages") ? hugePageSize(pod, medium) : 0;
    await host.makeDir(directory, 0o777);
    // As in Kubernetes only for pods with users of their own: the node's root may take files out of what is counted.
    if (medium === "" && pod.spec.hostUsers === false) await host.countUsage(directory);
    if (medium === "" || (await host.isMountPoint(directory))) return ready;
    if (medium === "Memory") {
      const sizeBytes = tmpfsSize(pod, volume, node);
      await host.mountTmpfs(directory, { mode: 0o1777, ...(sizeBytes === undefined ? {} : { sizeBytes }) });
    } else await host.mountHugePages(directory, { mode: 0o777, pageSizeBytes });
    return ready;
  },

  async tearDown({ directory }, { host }) {
    await unmountAll(directory, host);
    await host.removeTree(directory);
    await host.stopCounting(directory);
  },
};

/** The smallest of the volume's limit, the pod's memory limit if all its containers have one, and the node's memory. */
function tmpfsSize(pod: Pod, volume: Volume, node: VolumeNode): number | undefined {
  const limit = volume.emptyDir?.sizeLimit;
  const own = limit === undefined ? undefined : wholeValue(parseQuantity(limit));
  const ofPod = isLimited(pod, "memory") ? bytesOf(podLimits(pod), "memory") : undefined;
  const { memory } = node.allocatable;
  const ofNode = memory === undefined ? undefined : wholeValue(parseQuantity(memory));
  const sizes = [own, ofPod, ofNode].filter((size) => size !== undefined).filter((size) => size > 0);
  return sizes.length === 0 ? undefined : Math.min(...sizes);
}

/** The page size in the medium's name, else the one that the pod's containers ask for: it must be asked for. */
function hugePageSize(pod: Pod, medium: string): number {
  const asked = Object.keys({ ...podRequests(pod), ...podLimits(pod) }).filter((name) => name.startsWith("hugepages-"));
  const sizes = asked.map((name) => wholeValue(parseQuantity(name.slice("hugepages-".length))));
  if (medium === "HugePages") {
    const [only] = sizes;
    if (only !== undefined && sizes.length === 1) return only;
    const found = sizes.length === 0 ? "no huge pages" : `several huge page sizes (${asked.join(", ")})`;
    throw new Error(`emptyDir.medium HugePages requires one huge page size, containers request ${found}`);
  }
  const name = medium.startsWith("HugePages-") ? medium.slice("HugePages-".length) : "";
  const named = tryParseQuantity(name);
  if (named === undefined) throw new Error(`emptyDir.medium "${medium}" does not name a huge page size`);
  if (sizes.includes(wholeValue(named))) return wholeValue(named);
  throw new Error(`emptyDir.medium ${medium}: containers request no huge pages of ${name}`);
}
