import { type Abortable, TimeLimitError } from "../../lib/abort.ts";
import { messageOf } from "../../lib/errors.ts";
import type { NFSVolumeSource } from "../../model/generated/types.ts";
import type { ReadyVolume, VolumeHost, VolumeKind, VolumeOfPod } from "../kind.ts";
import { joinOptions, mountOptionsOf } from "../mount-options.ts";

/** What mount(8) prints on a machine that lacks a part of NFS, and what to do about it. */
const MISSING_PARTS: readonly (readonly [RegExp, string])[] = [
  [/helper program|mount\.nfs: not found/, "install the NFS client of the distribution (nfs-common, nfs-utils)"],
  [/unknown filesystem type|No such device/, "the kernel has no NFS client: load the module nfs"],
  [/rpc\.statd is not running/, "start rpc-statd, or set the mount option nolock"],
];

/**
 * An export of an NFS server, mounted for each pod by itself: the kernel has one filesystem behind all of them. The server
 * may be gone at any time, so nothing here looks at what is mounted but child processes with time limits.
 */
export const nfs: VolumeKind = {
  plugin: "kubernetes.io/nfs",
  handles: (volume) => volume.nfs !== undefined,
  handlesPersistent: (spec) => spec.nfs !== undefined,

  async setUp(of, { host }, options) {
    const { directory, persistent } = of;
    const source = sourceOf(of);
    const readonly = persistent === undefined ? source.readOnly === true : persistent.readonly;
    if (persistent?.isBlock === true)
      throw new Error(`volume "${persistent.object.metadata.name}" is of an NFS server, which has no block devices`);
    const ready: ReadyVolume = {
      source: { kind: "path", path: directory, readonly, isUsers: true, isRemote: true },
      isMounted: true,
    };
    if ((await host.mountAt(directory)) !== undefined) {
      if (await answers({ directory, server: source.server }, host, options)) return ready;
      await host.unmountByCommand(directory, { ...options, mayForce: true });
    }
    await host.makeDir(directory, 0o750);
    await mount({ of, source, readonly }, host, options);
    return ready;
  },

  /** Nothing of an export is lost by a forced unmount that its server would not have lost by being gone. */
  async tearDown({ directory }, { host }, options) {
    await host.unmountByCommand(directory, { ...options, mayForce: true });
    await host.removeDir(directory);
  },
};

function sourceOf({ volume, persistent }: VolumeOfPod): NFSVolumeSource {
  const source = persistent?.object.spec.nfs ?? volume.nfs;
  if (source === undefined) throw new Error(`volume "${volume.name}" is no NFS volume`);
  return source;
}

async function mount(
  { of, source, readonly }: { of: VolumeOfPod; source: NFSVolumeSource; readonly: boolean },
  host: VolumeHost,
  options: Abortable,
): Promise<void> {
  const chosen = joinOptions(mountOptionsOf(of.persistent), readonly ? ["ro"] : []);
  // mount.nfs would try for two minutes without a word: the volume is tried again anyway, and its pod knows why.
  const patience = chosen.some((option) => option.startsWith("retry=")) ? [] : ["retry=0"];
  const server = source.server.includes(":") && !source.server.startsWith("[") ? `[${source.server}]` : source.server;
  const request = { source: `${server}:${source.path}`, target: of.directory, type: "nfs" };
  try {
    await host.mountByCommand({ ...request, options: [...chosen, ...patience] }, options);
  } catch (error) {
    options.signal.throwIfAborted();
    const message = messageOf(error);
    const advice = MISSING_PARTS.find(([words]) => words.test(message))?.[1];
    throw advice === undefined ? error : new Error(`${message} (${advice})`, { cause: error });
  }
}

/** False if the export was replaced behind the mount; rejects if the server does not answer. */
async function answers(
  { directory, server }: { readonly directory: string; readonly server: string },
  host: VolumeHost,
  options: Abortable,
): Promise<boolean> {
  try {
    await host.kindOf(directory, options);
    return true;
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof TimeLimitError)
      throw new Error(`NFS server ${server} does not answer: stat ${directory}: ${error.message}`, { cause: error });
    if (/Stale file handle/.test(messageOf(error))) return false;
    throw error;
  }
}
