import type { Abortable } from "../../lib/abort.ts";
import { type ReadyVolume, unmountAll, type VolumeDeps, type VolumeHost } from "../kind.ts";

/** The directory name of local persistent volumes. */
export const LOCAL_PLUGIN = "kubernetes.io~local-volume";

/**
 * A directory of the node that a PersistentVolume stands for, or the filesystem on a device of it, mounted into the
 * pod's own directory. Several pods may do so at once: the kernel has one filesystem behind all mounts of a device.
 */
export async function setUpLocal(
  volume: { path: string; directory: string; readonly: boolean; fsType?: string },
  { host }: VolumeDeps,
  options: Abortable,
): Promise<ReadyVolume> {
  const { path, directory, readonly, fsType } = volume;
  const found = await host.kindOf(path, options);
  if (found === undefined) throw new Error(`the local volume ${path} does not exist`);
  if (found !== "directory" && found !== "blockDevice") {
    throw new Error(`the local volume ${path} is neither a directory nor a block device`);
  }
  await host.makeDir(directory, 0o750);
  if (!(await host.isMountPoint(directory))) {
    const request = { device: path, target: directory, mayFormat: !readonly, ...(fsType && { fsType }) };
    if (found === "directory") await host.bindMount(path, directory);
    else await host.mountDevice(request, options);
  }
  return { source: { kind: "path", path: directory, readonly }, isMounted: true };
}

/** A block device of the node, as it is: nothing is made for the pod, so nothing has to be taken down. */
export async function setUpDevice(
  { path, readonly }: { path: string; readonly: boolean },
  { host }: VolumeDeps,
  options: Abortable,
): Promise<ReadyVolume> {
  const found = await host.kindOf(path, options);
  if (found === undefined) throw new Error(`the local volume ${path} does not exist`);
  if (found !== "blockDevice") throw new Error(`the local volume ${path} is no block device`);
  return { source: { kind: "device", path, readonly } };
}

/** Never removes a tree: what is below may be the user's if the mount could not be ended. */
export async function tearDownLocal(directory: string, host: VolumeHost): Promise<void> {
  await unmountAll(directory, host);
  await host.removeDir(directory);
}
