import type { CommandMount } from "../adapters/host/mount-commands.ts";
import type { PathKind } from "../adapters/host/path-kind.ts";
import type { CommandResult, MountedAt } from "../adapters/host/volume-host.ts";
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
import type { VolumeSpace } from "../model/usage.ts";
import type { ClaimExpander, ClaimWriter } from "./expansion/claim-expander.ts";
import type { ExpandRequest } from "./expansion/expand-request.ts";
import type { OperationName } from "./metrics.ts";

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
    request: { device: string; target: string; fsType?: string; mayFormat: boolean; options?: readonly string[] },
    options: Abortable,
  ): Promise<void>;
  /** Mounts what may hang, in a child process with a time limit. After a failure it may be mounted or not. */
  mountByCommand(request: CommandMount, options: Abortable): Promise<void>;
  /** The same for a bind mount; `options` are flags such as `ro`. */
  bindByCommand(request: Omit<CommandMount, "type">, options: Abortable): Promise<void>;
  /** Unmounts all that is at a path, in a child process with a time limit; `mayForce`: also if its server is gone. */
  unmountByCommand(path: string, options: Abortable & { mayForce?: boolean }): Promise<void>;
  /**
   * Unmounts what a server does not answer for, in a child process with a time limit: whatever waits for the server fails,
   * in all mounts of the filesystem, whether this one goes or is in use.
   */
  unmountByForce(path: string, options: Abortable): Promise<void>;
  /** What is mounted at a path, by the kernel's table alone: never hangs. */
  mountAt(path: string): Promise<MountedAt | undefined>;
  /**
   * Where else what is mounted at a path is mounted, in whole or in part; `isWhole`: only in whole, `isAny`: other parts of
   * the same filesystem, too.
   */
  otherMounts(path: string, options?: { isWhole?: boolean; isAny?: boolean }): Promise<readonly string[]>;
  /** Runs a command of others; rejects if there is none, and at its time limit. */
  run(
    command: readonly [string, ...string[]],
    options: Abortable & { timeoutMs: number; input?: string },
  ): Promise<CommandResult>;
  /** True if a filesystem or another device holds a block device, also one that is unmounted and still writes back. */
  isDeviceHeld(path: string, options: Abortable): Promise<boolean>;
  /** Keeps a block device at a path open, so that nobody replaces it silently: by a loop device. Safe to repeat. */
  lockDevice(path: string, options: Abortable): Promise<void>;
  /** Ends that; one that is not locked is success. */
  unlockDevice(path: string, options: Abortable): Promise<void>;
  /** The path without links. */
  realPath(path: string): Promise<string>;
  /** Replaces the link that is there, if any. */
  symlink(target: string, path: string): Promise<void>;
  /** Where a link points to; undefined if there is none. */
  readLink(path: string): Promise<string | undefined>;
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
  /** Removes a tree of directories; rejects at the first thing in it that is no directory, and at a mount. */
  removeEmptyTree(path: string): Promise<void>;
  /** Names in a directory; none if it does not exist. */
  list(path: string): Promise<readonly string[]>;
  /** The text of a small file of the agent's own; undefined if it does not exist, `InvalidArgument` if it is no such file. */
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
  /** The group that a directory of a volume belongs to. */
  groupOf(path: string): Promise<number>;
  /** Gives everything in a volume to a group; takes as long as it has files. */
  changeGroup(
    path: string,
    request: {
      gid: number;
      onlyOnMismatch: boolean;
      signal: AbortSignal;
      onProgress(entries: number): void;
      /** What is there may hang: a child process walks. */
      isRemote?: boolean;
    },
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
  /** Between two looks at what cannot be watched, and two publications of a volume that wants them, in milliseconds. */
  readonly syncMs: number;
}

/** What volumes need from the outside. */
export interface VolumeDeps {
  readonly host: VolumeHost;
  readonly objects: ObjectSource;
  readonly tokens?: TokenSource;
  /** Undefined without an API server. */
  readonly claims?: ClaimWriter | undefined;
  readonly trustBundles?: TrustBundleSource;
  readonly podCertificates?: PodCertificateSource;
  readonly clock: Clock;
  readonly node: VolumeNode;
}

/** What a kind sets volumes up with. */
export interface SetUpDeps extends VolumeDeps {
  /** Sets up the PersistentVolume behind a claim, by the kind that handles it. */
  setUpPersistent(of: VolumeOfClaim, options: Abortable): Promise<ReadyVolume>;
  /** What an earlier agent set up of it. */
  findPersistent(of: VolumeOfClaim, options: Abortable): Promise<ReadyVolume | undefined>;
  /** Grows the volumes of claims. */
  readonly expander: Pick<ClaimExpander, "whileMounting" | "whileUsed">;
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
  /** Nothing was ever staged in it: each attempt failed for certain, or none was made. */
  readonly isUntouched?: boolean;
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

/** A volume of a pod behind a claim. */
export type VolumeOfClaim = VolumeOfPod & { readonly persistent: PersistentSource };

/** A volume of a pod as a later agent finds it on disk. */
export interface VolumeOnDisk {
  readonly directory: string;
  /** Empty for kinds that do not stage. */
  readonly metadata: VolumeMetadata;
  /** Nothing was ever set up in it: each attempt failed for certain. */
  readonly isUntouched?: boolean;
}

/** What a container gets of a volume that is ready. */
export type VolumeSource =
  | {
      readonly kind: "path";
      readonly path: string;
      readonly readonly: boolean;
      readonly isUsers?: boolean;
      /** With SELinux: whether the runtime gives its files the label of the container. Defaults to not what is a user's. */
      readonly relabels?: boolean;
      /** What is mounted there may hang or go stale: only child processes with time limits look at it. */
      readonly isRemote?: boolean;
    }
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
  /** Grows it to at least so many bytes, and its filesystem; rejects with an `ExpandError`. Missing if that is never done. */
  expand?(request: ExpandRequest, options: Abortable): Promise<void>;
  /** Its driver counts its space. */
  readonly space?: SpaceSource;
  /** What has to be looked at from time to time while the pod runs. */
  readonly check?: VolumeCheck;
  /** Reported to the pod when it is ready for the first time. */
  readonly events?: readonly {
    /** Defaults to Normal. */
    readonly type?: "Warning";
    readonly reason: string;
    readonly message: string;
  }[];
  /** Wall-clock milliseconds at which it must be set up again (a token that expires). */
  readonly refreshAt?: number;
}

/** How the driver of a volume is asked for its space. */
export interface SpaceSource {
  /** Where the volume is. */
  readonly path: string;
  /** For metrics. */
  readonly driver: string;
  /** Undefined if the driver does not count. May take minutes. */
  read(options: Abortable): Promise<VolumeSpace | undefined>;
}

/** A look at something that cannot be watched. */
export interface VolumeCheck {
  /** The longest time between two checks, in milliseconds. */
  readonly everyMs: number;
  /** Rejects with what is reported to the pod; then it is tried again with back-off. */
  run(options: Abortable): Promise<void>;
}

/** Which changes a volume follows while its pod runs. */
export interface VolumeReferences {
  readonly objects: readonly ObjectRef[];
  readonly trustBundles?: readonly ClusterTrustBundleProjection[];
  readonly podCertificates?: readonly CertificateNeed[];
  /** Labels and annotations of the pod. */
  readonly pod?: boolean;
  /** Calls `fn` when something else has changed that the volume may wait for, until the signal aborts. */
  onChange?(fn: () => void, options: Abortable): void;
}

/** Kubernetes' names for what is done to a volume. */
export interface OperationNames {
  readonly setUp: OperationName;
  readonly tearDown: OperationName;
  readonly unstage: OperationName;
}

/** Of kinds that mount. */
export const MOUNT_OPERATIONS: OperationNames = {
  setUp: "volume_mount",
  tearDown: "volume_unmount",
  unstage: "unmount_device",
};

/** Of kinds that give devices to containers. */
export const MAP_OPERATIONS: OperationNames = {
  setUp: "map_volume",
  tearDown: "unmap_volume",
  unstage: "unmap_device",
};

/**
 * One kind of volume: one file in `kinds/`, one line in `kinds/index.ts`. Each call may be repeated at any time, also by
 * another agent after this one was killed in the middle of it.
 */
export interface VolumeKind {
  /** `kubernetes.io/empty-dir`; empty for a claim, which is set up by the kind of its PersistentVolume. */
  readonly plugin: string;
  /** True for a volume of a pod's spec. */
  handles?(volume: Volume): boolean;
  /** The name of the directory of a pod's own volume, if it is not that of the volume. Pure; must not throw. */
  directoryOf?(volume: Volume, pod: Pod): string | undefined;
  /** True for a PersistentVolume behind a claim. */
  handlesPersistent?(spec: PersistentVolumeSpec): boolean;
  /** The PersistentVolume as its driver knows it, if that is another one; throws if there is none. */
  persistentOf?(object: PersistentVolume): PersistentVolume;
  /** Mount options of a PersistentVolume are an error instead of being ignored. */
  readonly refusesMountOptions?: boolean;
  /** What it is made from beyond the spec; a change of it sets the volume up again. */
  references?(of: VolumeOfPod): VolumeReferences;
  /** True if its content follows what it refers to as long as the pod runs; others only wait for it. */
  readonly isLive?: boolean;
  /** By which names its operations are measured; those of mounts by default. */
  readonly operations?: OperationNames;
  /** True if only a missing object can keep it from being set up. */
  readonly isPlain?: boolean;
  /** Between two attempts at most, in milliseconds: what it waits for cannot be watched. */
  readonly maxBackoffMs?: number;
  /** Set for kinds that are mounted once a node, before their pods share them. */
  readonly staging?: VolumeStaging;
  /** Makes the volume ready for its pod. A volume that is ready stays as it is, or gets its newest content. */
  setUp(of: VolumeOfPod, deps: SetUpDeps, options: Abortable): Promise<ReadyVolume>;
  /** What an earlier agent set up and is still there, without asking anybody who may be away but for API objects. */
  find?(of: VolumeOfPod, deps: SetUpDeps, options: Abortable): Promise<ReadyVolume | undefined>;
  /** Removes what `setUp` made in the directory, never what belongs to the user. Missing if there is no directory. */
  tearDown?(volume: VolumeOnDisk, deps: TearDownDeps, options: Abortable): Promise<void>;
  /** Of a kind that stages: removes what a set-up left that failed for certain. Rejects if something is there after all. */
  discard?(volume: VolumeOnDisk, deps: TearDownDeps, options: Abortable): Promise<void>;
}

/**
 * How what is known of a kind's volumes and stages lies on disk. The reference of a pod's volume is written before
 * anything is done for it and removed last; a stage is written before anything is staged. Each call may be repeated.
 */
export interface VolumeLayout {
  /** The directory of a pod that holds references: `volumes`, or `volumeDevices` of block volumes. */
  readonly place: string;
  /** Undefined if there is none; rejects with a `MetadataError` if it cannot be understood. */
  readReference(directory: string, host: VolumeHost): Promise<VolumeMetadata | undefined>;
  writeReference(directory: string, metadata: VolumeMetadata, host: VolumeHost): Promise<void>;
  /** Removes what else is known of the volume with it; rejects if something is left in its directory. */
  removeReference(directory: string, host: VolumeHost): Promise<void>;
  /** Undefined if nothing was staged in the directory; rejects with a `MetadataError` if it cannot be understood. */
  readStage(directory: string, host: VolumeHost): Promise<VolumeMetadata | undefined>;
  writeStage(directory: string, metadata: VolumeMetadata, host: VolumeHost): Promise<void>;
  removeStage(directory: string, host: VolumeHost): Promise<void>;
}

/**
 * How a kind is mounted once a node. At most one of these calls, `setUp` and `tearDown` runs for a stage at a time. The
 * pod's `vol_data.json` is its reference to the stage: it is written first and removed last.
 *
 *     setUp:     write the reference ─► stage ─► set up for the pod
 *     tearDown:  tear down for the pod ─► no other reference: unstage ─► remove the reference
 */
export interface VolumeStaging {
  /** Defaults to `vol_data.json` beside the mounts. */
  readonly layout?: VolumeLayout;
  /** What is persisted of a volume. Volumes that are to share a stage must lead to the same `directory`. */
  metadata(of: VolumeOfPod, deps: SetUpDeps, options: Abortable): Promise<VolumeMetadata>;
  /** The driver that the plugin's name is completed by in metrics; none by default. Pure. */
  driverOf?(metadata: VolumeMetadata): string | undefined;
  /** True for a volume of an in-tree kind that the driver has taken over. Pure. */
  isMigrated?(of: VolumeOfPod): boolean;
  /** What is persisted beside the stage; defaults to what is persisted of its volumes. Pure. */
  stageMetadata?(metadata: VolumeMetadata): VolumeMetadata;
  /**
   * Where it is staged, relative to `ROOT/plugins`; undefined if it is only set up for its pod. Pure: the metadata of a
   * pod names the stage it uses.
   */
  directory(metadata: VolumeMetadata): string | undefined;
  /** Why a stage with this metadata cannot be used for a volume: it has to be unstaged first. Undefined if it can. Pure. */
  conflict?(staged: VolumeMetadata, wanted: VolumeMetadata): string | undefined;
  /** A pod was refused a volume for such a conflict: others use it. */
  refused?(of: VolumeOfPod): void;
  /** True if only one pod may use the volume at a time. Pure. */
  isExclusive?(of: VolumeOfPod): boolean;
  /** The stages on this node, relative to `ROOT/plugins`, also those of an earlier agent. */
  list(pluginsDir: string, host: VolumeHost): Promise<readonly string[]>;
  /** Mounts the volume below `of.stage.directory`. */
  stage(of: VolumeOfPod & { readonly stage: Stage }, deps: SetUpDeps, options: Abortable): Promise<void>;
  /** True if a volume has to be set up again from time to time: also one that an earlier agent set up. */
  isRefreshed?(metadata: VolumeMetadata, deps: VolumeDeps, options: Abortable): Promise<boolean>;
  /** Undoes `stage`, also one that failed or never began. */
  unstage(stage: Stage, deps: TearDownDeps, options: Abortable): Promise<void>;
  /** Unmounts a pod's volume whose metadata are lost. Defaults to what is mounted beside them. */
  forceDown?(directory: string, deps: TearDownDeps, options: Abortable): Promise<void>;
  /** Removes what a stage left that failed for certain. Rejects if something is staged after all. */
  discard?(stage: Stage, deps: TearDownDeps, options: Abortable): Promise<void>;
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
