import type { Abortable } from "../../lib/abort.ts";
import { ownValue } from "../../lib/own-value.ts";
import { matchesNodeSelector } from "../../model/node-selector.ts";
import { type ReadyVolume, unmountAll, type VolumeHost, type VolumeKind } from "../kind.ts";

/**
 * A directory of the node that a PersistentVolume stands for, or the filesystem on a device of it, mounted into the
 * pod's own directory. Several pods may do so at once: the kernel has one filesystem behind all mounts of a device.
 */
export const local: VolumeKind = {
  plugin: "kubernetes.io/local-volume",
  handlesPersistent: (spec) => spec.local !== undefined,

  async setUp({ directory, persistent }, { host, node }, options) {
    const { metadata, spec } = persistent?.object ?? { metadata: {}, spec: {} };
    const { path, fsType = "" } = spec.local ?? { path: "" };
    const required = spec.nodeAffinity?.required;
    // The only field is the node's name, which is also a label.
    const name = ownValue(node.labels, "kubernetes.io/hostname") ?? "";
    if (required !== undefined && !matchesNodeSelector(required, { name, labels: node.labels })) {
      throw new Error(`volume "${metadata.name}" belongs to another node (its nodeAffinity)`);
    }
    const readonly = persistent?.readonly === true;
    if (persistent?.isBlock === true) return setUpDevice({ path, readonly }, host, options);
    return mountLocal({ path, fsType, directory, readonly }, host, options);
  },

  /** Never removes a tree: what is below may be the user's if the unmount failed. */
  async tearDown({ directory }, { host }) {
    await unmountAll(directory, host);
    await host.removeDir(directory);
  },
};

async function mountLocal(
  volume: { path: string; directory: string; readonly: boolean; fsType: string },
  host: VolumeHost,
  options: Abortable,
): Promise<ReadyVolume> {
  const { path, directory, readonly, fsType } = volume;
  const found = await host.kindOf(path, options);
  if (found === undefined) throw new Error(`local volume path ${path} does not exist`);
  if (found !== "directory" && found !== "blockDevice") {
    throw new Error(`local volume path ${path} is neither a directory nor a block device`);
  }
  await host.makeDir(directory, 0o750);
  if (!(await host.isMountPoint(directory))) {
    const request = { device: path, target: directory, mayFormat: !readonly, ...(fsType && { fsType }) };
    if (found === "directory") await host.bindMount(path, directory);
    else await host.mountDevice(request, options);
  }
  return { source: { kind: "path", path: directory, readonly }, isMounted: true, takesGroup: true };
}

/** The device itself: nothing is mounted for the pod, so nothing has to be torn down. */
async function setUpDevice(
  { path, readonly }: { path: string; readonly: boolean },
  host: VolumeHost,
  options: Abortable,
): Promise<ReadyVolume> {
  const found = await host.kindOf(path, options);
  if (found === undefined) throw new Error(`local volume path ${path} does not exist`);
  if (found !== "blockDevice") throw new Error(`local volume path ${path} is not a block device`);
  return { source: { kind: "device", path, readonly } };
}
