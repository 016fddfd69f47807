import { DISK_LAYOUT } from "../disks/disk-layout.ts";
import type { VolumeLayout, VolumeMetadata } from "../kind.ts";
import { MetadataError, readMetadata, removeMetadata, writeMetadata } from "../metadata.ts";

/** Of a stage whose data is damaged. */
const UNKNOWN: VolumeMetadata = { disk: "unknown" };

/**
 * As other disks, and which disk is mounted at a stage: a stage has the name of a volume, and pods give the same name to
 * different disks.
 *
 *     plugins/kubernetes.io/flexvolume/VENDOR/DRIVER/mounts/NAME         mounted once a node, as in Kubernetes
 *     plugins/kubernetes.io/flexvolume-data/VENDOR/DRIVER/mounts/NAME    `vol_data.json`; missing of the original's
 */
export const FLEX_LAYOUT: VolumeLayout = {
  ...DISK_LAYOUT,

  async readStage(directory, host) {
    const isThere = (await DISK_LAYOUT.readStage(directory, host)) !== undefined;
    if (!isThere) return undefined;
    try {
      return (await readMetadata(dataOf(directory), host)) ?? {};
    } catch (error) {
      if (error instanceof MetadataError) return UNKNOWN;
      throw error;
    }
  },

  async writeStage(directory, metadata, host) {
    await host.makeDir(dataOf(directory), 0o750);
    await writeMetadata(dataOf(directory), metadata, host);
  },

  async removeStage(directory, host) {
    await DISK_LAYOUT.removeStage(directory, host);
    await removeMetadata(dataOf(directory), host);
    await host.removeDir(dataOf(directory));
  },
};

function dataOf(directory: string): string {
  const [own, data] = ["/plugins/kubernetes.io/flexvolume/", "/plugins/kubernetes.io/flexvolume-data/"];
  const at = directory.lastIndexOf(own);
  return `${directory.slice(0, at)}${data}${directory.slice(at + own.length)}`;
}
