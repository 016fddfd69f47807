import type { PathKind } from "../adapters/host/path-kind.ts";
import type { Abortable } from "../lib/abort.ts";
import type { Clock } from "../lib/clock.ts";
import type {
  ClusterTrustBundleProjection,
  PersistentVolume,
  PersistentVolumeSpec,
  Pod,
  PodCertificateProjection,
  Volume,
} from "../model/generated/types.ts";
import type { ObjectRef, ObjectSource } from "../model/object-source.ts";

/** One file of a volume that the agent writes. */
export interface VolumeFile {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** Defaults to root. */
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
  /** Names in a directory; none if it does not exist. */
  list(path: string): Promise<readonly string[]>;
  /** The text of a small file of the agent's own; undefined if it does not exist. */
  readFile(path: string): Promise<string | undefined>;
  /** Writes a file of the agent's own as a whole: after a crash it has the old content or the new. */
  replaceFile(path: string, text: string): Promise<void>;
  /** Succeeds if there is no such file. */
  removeFile(path: string): Promise<void>;
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
  /** Mounts a part of a volume; never leaves the volume, even if links in it are swapped meanwhile. */
  bindSubPath(request: { root: string; subPath: string; target: string }): Promise<void>;
}

/** Tokens of service accounts; only an API server issues them. */
export interface TokenSource {
  /** A token bound to the pod, cached while it is good. `refreshAt` is when to ask again, by wall-clock time. */
  token(
    request: { pod: Pod; audience: string; expirationSeconds: number },
    options: Abortable,
  ): Promise<{ token: string; refreshAt: number; expiresAt: number }>;
}

/** Certificates that a cluster trusts, as PEM texts. */
export interface TrustBundleSource {
  /** Undefined when no bundle is meant by the selection. */
  bundles(selection: ClusterTrustBundleProjection, options: Abortable): Promise<readonly string[] | undefined>;
  onChange(selection: ClusterTrustBundleProjection, fn: () => void, options: Abortable): void;
}

/** A `podCertificate` source of a projected volume. */
export interface CertificateNeed {
  readonly pod: Pod;
  readonly volume: string;
  /** Its place among the sources of the volume. */
  readonly index: number;
  readonly source: PodCertificateProjection;
}

/** Certificates of pods with their keys; only a signer of the cluster issues them. */
export interface PodCertificateSource {
  /** Throws while it is not issued. */
  credential(need: CertificateNeed): { readonly keyPem: string; readonly chainPem: string };
  /** Requests it, and calls `fn` when it is issued, refreshed or refused. */
  onChange(need: CertificateNeed, fn: () => void, options: Abortable): void;
}

/** What is true of the node now: read at each use, never kept. */
export interface VolumeNode {
  readonly allocatable: Readonly<Record<string, string>>;
  /** Labels by which a local volume is bound to its node. */
  readonly labels: Readonly<Record<string, string>>;
}

/** What volumes need from the outside. */
export interface VolumeDeps {
  readonly host: VolumeHost;
  readonly objects: ObjectSource;
  readonly tokens?: TokenSource;
  readonly trustBundles?: TrustBundleSource;
  readonly podCertificates?: PodCertificateSource;
  readonly clock: Clock;
  readonly node: VolumeNode;
}

/** What a kind sets volumes up with. */
export interface SetUpDeps extends VolumeDeps {
  /** Sets up the PersistentVolume behind a claim, by the kind that handles it. */
  setUpPersistent(
    of: VolumeOfPod & { readonly persistent: PersistentSource },
    options: Abortable,
  ): Promise<ReadyVolume>;
}

/** What a kind tears volumes down with: no objects of an API server, which may be unreachable or have lost them. */
export type TearDownDeps = Pick<VolumeDeps, "host" | "clock">;

/**
 * What tearing down and unstaging need, persisted as `vol_data.json` beside the mount. Flat, as that file of Kubernetes
 * is. Never a secret.
 */
export type VolumeMetadata = Readonly<Record<string, string>>;

/** The PersistentVolume behind a claim. */
export interface PersistentSource {
  readonly object: PersistentVolume;
  /** volumeMode Block: containers get a device, nothing is mounted. */
  readonly isBlock: boolean;
  readonly readonly: boolean;
}

/** A volume that is mounted once a node. */
export interface Stage {
  /** `ROOT/plugins/…`; the kind mounts below it. */
  readonly directory: string;
  readonly metadata: VolumeMetadata;
}

/** A volume of a pod, and the directory that belongs to it. */
export interface VolumeOfPod {
  readonly pod: Pod;
  readonly volume: Volume;
  /** `ROOT/pods/UID/volumes/PLUGIN/NAME`; NAME is that of the PersistentVolume if there is one. */
  readonly directory: string;
  /** Set if the volume is a claim. */
  readonly persistent?: PersistentSource;
  /** Set for kinds that stage. */
  readonly stage?: Stage;
}

/** A volume of a pod as a later agent finds it on disk. */
export interface VolumeOnDisk {
  readonly directory: string;
  /** Empty for kinds that do not stage. */
  readonly metadata: VolumeMetadata;
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
  /** fsGroup has to be applied to its tree, once after it was set up. */
  readonly takesGroup?: boolean;
  /** A group that processes of the pod need to use the volume. */
  readonly gid?: number;
  /** The kind that set it up, for metrics. */
  readonly plugin?: string;
  /** Wall-clock milliseconds at which it must be set up again (a token that expires). */
  readonly refreshAt?: number;
}

/** Which changes a volume follows while its pod runs. */
export interface VolumeReferences {
  readonly objects: readonly ObjectRef[];
  readonly trustBundles?: readonly ClusterTrustBundleProjection[];
  readonly podCertificates?: readonly CertificateNeed[];
  /** Labels and annotations of the pod. */
  readonly pod?: boolean;
}

/**
 * One kind of volume: one file in `kinds/`, one line in `kinds/index.ts`. Each call may be repeated at any time, also by
 * another agent after this one was killed in the middle of it.
 */
export interface VolumeKind {
  /** `kubernetes.io/empty-dir`; empty for a claim, which is set up by the kind of its PersistentVolume. */
  readonly plugin: string;
  /** True for a volume of a pod's spec. */
  handles?(volume: Volume): boolean;
  /** True for a PersistentVolume behind a claim. */
  handlesPersistent?(spec: PersistentVolumeSpec): boolean;
  /** What it is made from beyond the spec; a change of it sets the volume up again. */
  references?(of: VolumeOfPod): VolumeReferences;
  /** True if its content follows what it refers to as long as the pod runs; others only wait for it. */
  readonly isLive?: boolean;
  /** True if only a missing object can keep it from being set up. */
  readonly isPlain?: boolean;
  /** Between two attempts at most, in milliseconds: what it waits for cannot be watched. */
  readonly maxBackoffMs?: number;
  /** Set for kinds that are mounted once a node, before their pods share them. */
  readonly staging?: VolumeStaging;
  /** Makes the volume ready for its pod. A volume that is ready stays as it is, or gets its newest content. */
  setUp(of: VolumeOfPod, deps: SetUpDeps, options: Abortable): Promise<ReadyVolume>;
  /** Removes what `setUp` made in the directory, never what belongs to the user. Missing if there is no directory. */
  tearDown?(volume: VolumeOnDisk, deps: TearDownDeps, options: Abortable): Promise<void>;
}

/**
 * How a kind is mounted once a node. At most one of these calls, `setUp` and `tearDown` runs for a stage at a time. The
 * pod's `vol_data.json` is its reference to the stage: it is written first and removed last.
 *
 *     setUp:     write the reference ─► stage ─► set up for the pod
 *     tearDown:  tear down for the pod ─► no other reference: unstage ─► remove the reference
 */
export interface VolumeStaging {
  /** What is persisted of a volume. Volumes that are to share a stage must lead to the same `directory`. */
  metadata(of: VolumeOfPod, deps: SetUpDeps, options: Abortable): Promise<VolumeMetadata>;
  /** Where it is staged, relative to `ROOT/plugins`. Pure: the metadata of a pod names the stage it uses. */
  directory(metadata: VolumeMetadata): string;
  /** The stages on this node, relative to `ROOT/plugins`, also those of an earlier agent. */
  list(pluginsDir: string, host: VolumeHost): Promise<readonly string[]>;
  /** Mounts the volume below `of.stage.directory`. */
  stage(of: VolumeOfPod & { readonly stage: Stage }, deps: SetUpDeps, options: Abortable): Promise<void>;
  /** True if a volume has to be set up again from time to time: also one that an earlier agent set up. */
  isRefreshed?(metadata: VolumeMetadata, deps: VolumeDeps, options: Abortable): Promise<boolean>;
  /** Undoes `stage`, also one that failed or never began. */
  unstage(stage: Stage, deps: TearDownDeps, options: Abortable): Promise<void>;
}

/** The directory of a kind below a pod's `volumes`: `kubernetes.io~empty-dir`. */
export function directoryName({ plugin }: Pick<VolumeKind, "plugin">): string {
  return plugin.replace("/", "~");
}

/** Where a kind that stages mounts a volume for its pod: beside the metadata, as CSI volumes are in Kubernetes. */
export function podMount(directory: string): string {
  return `${directory}/mount`;
}

/** Unmounts everything that is mounted at the directory itself; more than a few layers are not ours. */
export async function unmountAll(directory: string, host: Pick<VolumeHost, "isMountPoint" | "unmount">): Promise<void> {
  for (let layer = 0; layer < 8 && (await host.isMountPoint(directory)); layer++) await host.unmount(directory);
}

/** Removes what something was mounted at: an empty directory, or the file of a block device. */
export async function removeMountTarget(
  path: string,
  host: Pick<VolumeHost, "removeDir" | "removeFile" | "kindOf">,
  options: Abortable,
): Promise<void> {
  try {
    await host.removeDir(path);
  } catch (error) {
    if ((await host.kindOf(path, options)) !== "file") throw error;
    await host.removeFile(path);
  }
}
