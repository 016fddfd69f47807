import { basename, dirname } from "node:path";
import type { VolumeHost, VolumeLayout, VolumeMetadata } from "../kind.ts";
import { readMetadata, removeMetadata, writeMetadata } from "../metadata.ts";

/**
 * Where disks lie. They are mounted at the directories themselves, as in Kubernetes, so that nothing can be kept in those
 * or beside them. What is known of a pod's volume is in the directory that Kubernetes has for data of plugins:
 *
 *     plugins/kubernetes.io/iscsi/…/DISK            mounted once a node
 *     pods/UID/volumes/kubernetes.io~iscsi/NAME     bound for the pod
 *     pods/UID/plugins/kubernetes.io~iscsi/NAME     `vol_data.json`
 *
 * What a stage is can be told by its path, or by what its kind keeps below the mount.
 */
export const DISK_LAYOUT: VolumeLayout = {
  place: "volumes",
  ...common(),

  async writeReference(directory, metadata, host) {
    await writeData(directory, metadata, host);
    // Listed from now on; what is mounted there is not looked at.
    if ((await host.mountAt(directory)) === undefined) await host.makeDir(directory, 0o750);
  },

  async removeReference(directory, host) {
    await removeData(directory, host);
    await host.removeDir(directory);
  },
};

/**
 * The same for block devices, which are linked into the pod's directory.
 *
 *     plugins/kubernetes.io/iscsi/volumeDevices/…/DISK/UID   the device, bound here and locked
 *     pods/UID/volumeDevices/kubernetes.io~iscsi/NAME        link to the device
 */
export const BLOCK_DISK_LAYOUT: VolumeLayout = {
  place: "volumeDevices",
  ...common(),

  async writeReference(link, metadata, host) {
    await writeData(link, metadata, host);
    await host.makeDir(dirname(link), 0o750);
    // Listed from now on; it points to nothing until the device is there.
    if ((await host.readLink(link)) === undefined) await host.symlink(NOWHERE, link);
  },

  async removeReference(link, host) {
    await removeData(link, host);
    await host.removeFile(link);
  },
};

const NOWHERE = "not-attached";

function common(): Pick<VolumeLayout, "readReference" | "readStage" | "writeStage" | "removeStage"> {
  return {
    readReference: (directory, host) => readMetadata(dataOf(directory), host),
    // Whatever is there has to be undone, and the kind knows how.
    async readStage(directory, host) {
      return (await host.list(dirname(directory))).includes(basename(directory)) ? {} : undefined;
    },
    writeStage: () => Promise.resolve(),
    removeStage: (directory, host) => host.removeDir(directory),
  };
}

/** `pods/UID/plugins/KIND/NAME` of `pods/UID/volumes/KIND/NAME`. */
function dataOf(directory: string): string {
  const kind = dirname(directory);
  return `${dirname(dirname(kind))}/plugins/${basename(kind)}/${basename(directory)}`;
}

/** The pod of `pods/UID/volumes/KIND/NAME`. */
export function podOf(directory: string): string {
  return basename(dirname(dirname(dirname(directory))));
}

async function writeData(directory: string, metadata: VolumeMetadata, host: VolumeHost): Promise<void> {
  await host.makeDir(dataOf(directory), 0o750);
  await writeMetadata(dataOf(directory), metadata, host);
}

async function removeData(directory: string, host: VolumeHost): Promise<void> {
  await removeMetadata(dataOf(directory), host);
  await host.removeDir(dataOf(directory));
}
