import { basename, dirname } from "node:path";
import type { VolumeHost, VolumeLayout, VolumeMetadata } from "../kind.ts";
import { readMetadata, removeMetadata, writeMetadata } from "../metadata.ts";
import type { VolumePaths } from "../paths.ts";
import { CSI_PLUGIN } from "./request.ts";

/** Where the block volumes of CSI drivers lie below `ROOT/plugins`. */
export const BLOCK_DIRECTORY = `${CSI_PLUGIN}/volumeDevices`;
const [STAGING, PUBLISH] = ["staging", "publish"];

/**
 * Where the parts of a block volume lie, as in Kubernetes. NAME is that of the PersistentVolume.
 *
 *     plugins/kubernetes.io/csi/volumeDevices/NAME/data/vol_data.json
 *     plugins/kubernetes.io/csi/volumeDevices/NAME/dev/POD          the device, bound here and locked
 *     plugins/kubernetes.io/csi/volumeDevices/staging/NAME          where the driver stages
 *     plugins/kubernetes.io/csi/volumeDevices/publish/NAME/POD      where the driver publishes
 *     pods/POD/volumeDevices/kubernetes.io~csi/NAME                 link to the device
 */
export class BlockPaths {
  private readonly base: string;

  constructor(paths: Pick<VolumePaths, "plugins">) {
    this.base = `${paths.plugins}/${BLOCK_DIRECTORY}`;
  }

  /** The parts of the volume whose link this is. */
  ofLink(link: string): { name: string; uid: string; publishPath: string; devicePath: string } {
    const name = basename(link);
    // pods/POD/volumeDevices/kubernetes.io~csi/NAME
    const uid = basename(dirname(dirname(dirname(link))));
    return { name, uid, publishPath: `${this.publishDir(name)}/${uid}`, devicePath: `${this.mapDir(name)}/${uid}` };
  }

  directory(name: string): string {
    return `${this.base}/${name}`;
  }

  dataDir(name: string): string {
    return `${this.directory(name)}/data`;
  }

  mapDir(name: string): string {
    return `${this.directory(name)}/dev`;
  }

  stagingPath(name: string): string {
    return `${this.base}/${STAGING}/${name}`;
  }

  publishDir(name: string): string {
    return `${this.base}/${PUBLISH}/${name}`;
  }

  /** True if this is the directory of a block volume. */
  has(directory: string): boolean {
    return dirname(directory) === this.base;
  }

  /** Where something may be mounted of the volume with this directory. */
  places(directory: string): readonly string[] {
    const name = basename(directory);
    return [this.stagingPath(name), this.publishDir(name), this.mapDir(name)];
  }

  /** The volumes that there are. */
  async names(host: Pick<VolumeHost, "list">): Promise<readonly string[]> {
    return (await host.list(this.base)).filter((name) => name !== STAGING && name !== PUBLISH);
  }
}

/**
 * The link in the pod's directory is the reference to the volume, its staging directory means that it may be staged. The
 * link is there before the device is: an agent that dies in between leaves nothing that nobody knows of.
 */
export function blockLayout(paths: BlockPaths): VolumeLayout {
  const data = (name: string, host: VolumeHost): Promise<VolumeMetadata | undefined> =>
    readMetadata(paths.dataDir(name), host);
  const write = async (name: string, metadata: VolumeMetadata, host: VolumeHost): Promise<void> => {
    await host.makeDir(paths.dataDir(name), 0o750);
    await writeMetadata(paths.dataDir(name), metadata, host);
  };
  return {
    place: "volumeDevices",

    async readReference(link, host) {
      return (await host.readLink(link)) === undefined ? undefined : data(basename(link), host);
    },

    async writeReference(link, metadata, host) {
      const { name, publishPath } = paths.ofLink(link);
      await write(name, metadata, host);
      await host.makeDir(dirname(link), 0o750);
      if ((await host.readLink(link)) === undefined) await host.symlink(publishPath, link);
    },

    removeReference: (link, host) => host.removeFile(link),

    async readStage(directory, host) {
      const name = basename(directory);
      const staging = (await host.list(dirname(paths.stagingPath(name)))).includes(name);
      return staging ? data(name, host) : undefined;
    },

    async writeStage(directory, _metadata, host) {
      await host.makeDir(paths.stagingPath(basename(directory)), 0o750);
    },

    async removeStage(directory, host) {
      const name = basename(directory);
      for (const path of [paths.publishDir(name), paths.stagingPath(name), paths.mapDir(name)]) {
        await host.removeDir(path);
      }
      await removeMetadata(paths.dataDir(name), host);
      await host.removeDir(paths.dataDir(name));
      await host.removeDir(directory);
    },
  };
}
