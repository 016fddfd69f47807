import type { DiskDriver } from "../disks/disk-driver.ts";
import { blockDiskKind, diskKind } from "../disks/disk-kind.ts";
import type { VolumeKind, VolumeOfPod } from "../kind.ts";
import { listLevels } from "../paths.ts";

const PLUGIN = "kubernetes.io/local-volume";
/** As Kubernetes has it, with the name escaped for block devices only. */
const MOUNTS = `${PLUGIN}/mounts`;
const BLOCK = "kubernetes.io~local-volume/volumeDevices";

/**
 * A directory or a block device of the node that a PersistentVolume stands for. A directory is bound into its pods; a
 * device is mounted once a node, or given to containers as it is.
 */
const driver: DiskDriver = {
  plugin: PLUGIN,
  isRemote: false,
  hasGroupOfFirst: true,
  grows: true,
  handlesPersistent: (spec) => spec.local !== undefined,
  use: ({ persistent }) => ({
    fsType: persistent?.object.spec.local?.fsType ?? "",
    readonly: persistent?.readonly === true,
  }),

  async metadata(of, { host }, options) {
    const path = pathOf(of);
    const found = await host.kindOf(path, options);
    if (found === undefined) throw new Error(`local volume path ${path} does not exist`);
    const isBlock = of.persistent?.isBlock === true;
    if (isBlock && found !== "blockDevice") throw new Error(`local volume path ${path} is not a block device`);
    if (found !== "directory" && found !== "blockDevice")
      throw new Error(`local volume path ${path} is neither a directory nor a block device`);
    return { specVolID: of.persistent?.object.metadata.name ?? "", source: found };
  },

  directory({ specVolID = "", source }, mode) {
    if (mode === "Block") return `${BLOCK}/${specVolID}`;
    return source === "blockDevice" ? `${MOUNTS}/${specVolID}` : undefined;
  },

  async list(pluginsDir, mode, host) {
    const base = mode === "Block" ? BLOCK : MOUNTS;
    return (await listLevels(`${pluginsDir}/${base}`, 1, host)).map((name) => `${base}/${name}`);
  },

  unstaged: pathOf,
  attach: ({ of }) => Promise.resolve(pathOf(of)),
  // The device is the node's own.
  detach: () => Promise.resolve(),
};

export const local: VolumeKind = diskKind(driver);
export const localBlock: VolumeKind = blockDiskKind(driver);

function pathOf({ persistent }: VolumeOfPod): string {
  return persistent?.object.spec.local?.path ?? "";
}
