import type { PathKind } from "../adapters/host/path-kind.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type { ClusterTrustBundleProjection, Pod, Volume } from "../model/generated/types.ts";
import type { ObjectRef, ObjectSource } from "../model/object-source.ts";

/** One file of a volume that the agent writes. */
export interface VolumeFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** Root unless said. */
  readonly uid?: number;
}

/** What kinds of volumes may do to the machine. */
export interface VolumeHost {
  /** With its parents; the mode is set whatever the umask is. */
  makeDir(path: string, mode: number): Promise<void>;
  /** Creates an empty file if there is none. */
  makeFile(path: string, mode: number): Promise<void>;
  /** What is at a path, links followed; undefined when nothing is. Never hangs for long: a path may be a dead NFS mount. */
  kindOf(path: string, options: Abortable): Promise<PathKind | undefined>;
  mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void>;
  mountHugePages(path: string, options: { pageSizeBytes: number; mode: number }): Promise<void>;
  bindMount(source: string, target: string): Promise<void>;
  /** Mounts the filesystem on a block device. One that is blank gets one, if it may; never one that holds anything. */
  mountDevice(
    request: { device: string; target: string; fsType?: string; mayFormat: boolean },
    options: Abortable,
  ): Promise<void>;
  /** Has the filesystem itself count what will be in an empty directory, where it can. Safe to repeat, never rejects. */
  countUsage(path: string): Promise<void>;
  /** Ends that for a directory that was removed. Safe to repeat, never rejects. */
  stopCounting(path: string): Promise<void>;
  isMountPoint(path: string): Promise<boolean>;
  /** Everything mounted at or below a path, outermost first. */
  mountsBelow(path: string): Promise<readonly string[]>;
  unmount(path: string): Promise<void>;
  /** Never enters a mount: rejects instead. */
  removeTree(path: string): Promise<void>;
  /** Removes an empty directory; rejects when something is in it. */
  removeDir(path: string): Promise<void>;
  /** Names in a directory; none when it does not exist. */
  list(path: string): Promise<readonly string[]>;
  /** Replaces the content of a directory by one rename; false when it is the same already. */
  writeFiles(
    directory: string,
    request: { files: ReadonlyMap<string, VolumeFile>; stamp: string; gid?: number },
  ): Promise<boolean>;
  /** Gives everything in a volume to a group; takes as long as it has files. */
  changeGroup(
    path: string,
    request: { gid: number; onlyOnMismatch: boolean; signal: AbortSignal; onProgress(entries: number): void },
  ): Promise<void>;
  /** Mounts a part of a volume; never leaves the volume, whoever swaps links in it. */
  bindSubPath(request: { root: string; subPath: string; target: string }): Promise<void>;
}

/** Tokens of service accounts; only an API server issues them. */
export interface TokenSource {
  /** A token bound to the pod, cached while it is good. `refreshAt` is the wall-clock time at which to ask again. */
  token(
    request: { pod: Pod; audience: string; expirationSeconds: number },
    options: Abortable,
  ): Promise<{ token: string; refreshAt: number }>;
}

/** Certificates that a cluster trusts, as PEM texts. */
export interface TrustBundleSource {
  /** Undefined when no bundle is meant by the selection. */
  bundles(selection: ClusterTrustBundleProjection, options: Abortable): Promise<readonly string[] | undefined>;
  onChange(selection: ClusterTrustBundleProjection, fn: () => void, options: Abortable): void;
}

/** What is true of the node now: read at each use, never kept. */
export interface VolumeNode {
  readonly allocatable: Readonly<Record<string, string>>;
  /** Labels by which a local volume is bound to its node. */
  readonly labels: Readonly<Record<string, string>>;
}

/** What kinds of volumes are made with. */
export interface VolumeDeps {
  readonly host: VolumeHost;
  readonly objects: ObjectSource;
  readonly tokens?: TokenSource;
  readonly trustBundles?: TrustBundleSource;
  readonly clock: Clock;
  readonly node: VolumeNode;
}

/** A volume of a pod, and the directory that is its own. */
export interface VolumeOfPod {
  readonly pod: Pod;
  readonly volume: Volume;
  /** `ROOT/pods/UID/volumes/PLUGIN/NAME`. */
  readonly directory: string;
}

/** What a container gets of a volume that is ready. */
export type VolumeSource =
  | { readonly kind: "path"; readonly path: string; readonly readonly: boolean; readonly isUsers?: boolean }
  /** A block device, which containers get as a device and never as a mount. */
  | { readonly kind: "device"; readonly path: string; readonly readonly: boolean }
  /** The runtime mounts the image's content itself. */
  | { readonly kind: "image"; readonly reference: string; readonly pullPolicy: string };

/** A volume that is ready. */
export interface ReadyVolume {
  readonly source: VolumeSource;
  /** Its path is a mount: somebody may unmount it. */
  readonly isMounted?: boolean;
  /** Wall-clock milliseconds at which it must be set up anew (a token that ends). */
  readonly refreshAt?: number;
}

/** Which changes a volume follows while its pod runs. */
export interface VolumeReferences {
  readonly objects: readonly ObjectRef[];
  readonly trustBundles?: readonly ClusterTrustBundleProjection[];
  /** Labels and annotations of the pod. */
  readonly pod?: boolean;
}

/** One kind of volume: one file in `kinds/`, one line in `kinds/index.ts`. */
export interface VolumeKind {
  /** The directory name of the kind, `kubernetes.io~empty-dir`; empty for kinds that have no directory. */
  readonly plugin: string;
  handles(volume: Volume): boolean;
  /** What it is made from beyond the spec; a change of it sets the volume up again. */
  references?(of: VolumeOfPod): VolumeReferences;
  /** True when its content follows what it refers to as long as the pod runs; others only wait for it. */
  readonly isLive?: boolean;
  /** True when only a missing object can keep it from being made. */
  readonly isPlain?: boolean;
  /** What it waits for cannot be watched: it is asked for again after this long at the latest, in milliseconds. */
  readonly longestPauseMs?: number;
  /** True when fsGroup is applied to its tree by the reconciler, once it is set up. */
  readonly takesGroup?: boolean;
  /** Makes the volume ready. Safe to repeat: a volume that is ready stays as it is, or gets its newest content. */
  setUp(of: VolumeOfPod, deps: VolumeDeps, options: Abortable): Promise<ReadyVolume>;
  /** Takes down what is in the kind's own directory. Safe to repeat; never touches what is the user's. */
  tearDown(directory: string, host: VolumeHost): Promise<void>;
}

/** Unmounts everything that is mounted at the directory itself; more than a few layers are not ours. */
export async function unmountAll(directory: string, host: Pick<VolumeHost, "isMountPoint" | "unmount">): Promise<void> {
  for (let layer = 0; layer < 8 && (await host.isMountPoint(directory)); layer++) await host.unmount(directory);
}
