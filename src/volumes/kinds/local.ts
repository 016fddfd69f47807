import type { Abortable } from "../../lib/abort.ts";
import { type ReadyVolume, unmountAll, type VolumeDeps, type VolumeHost } from "../kind.ts";

/** The directory name of local persistent volumes. */
export const LOCAL_PLUGIN = "kubernetes.io~local-volume";

/** A directory of the node that a PersistentVolume stands for, mounted into the pod's own. */
export async function setUpLocal(
  volume: { path: string; directory: string; readonly: boolean },
  { host }: VolumeDeps,
  options: Abortable,
): Promise<ReadyVolume> {
  const { path, directory, readonly } = volume;
  const found = await host.kindOf(path, options);
  if (found === undefined) throw new Error(`the local volume ${path} does not exist`);
  if (found !== "directory") throw new Error(`the local volume ${path} is no directory; others are not supported yet`);
  await host.makeDir(directory, 0o750);
  if (!(await host.isMountPoint(directory))) await host.bindMount(path, directory);
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
