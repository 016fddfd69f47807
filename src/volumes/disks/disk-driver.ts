import type { Abortable } from "../../lib/abort.ts";
import type { PersistentVolumeSpec, Volume } from "../../model/generated/types.ts";
import type { SetUpDeps, TearDownDeps, VolumeHost, VolumeMetadata, VolumeOfPod } from "../kind.ts";

/** How a disk is mounted. */
export interface DiskUse {
  /** Empty for what is found on it, or for ext4 if nothing is. */
  readonly fsType: string;
  readonly readonly: boolean;
}

/** A stage that a disk is attached for, or detached from. */
export interface DiskStage {
  /** `ROOT/plugins/…`; nothing is mounted there now. */
  readonly directory: string;
  /** Empty for a stage of which no pod is known any more. */
  readonly metadata: VolumeMetadata;
}

/** One kind of disk: how it gets to this node. Each call may be repeated at any time. */
export interface DiskDriver {
  readonly plugin: string;
  handles?(volume: Volume): boolean;
  handlesPersistent(spec: PersistentVolumeSpec): boolean;
  use(of: VolumeOfPod): DiskUse;
  /** What is persisted of a volume; never a secret. Throws for a source that makes no sense. */
  metadata(of: VolumeOfPod, deps: SetUpDeps, options: Abortable): Promise<VolumeMetadata>;
  /** Where it is staged, relative to `ROOT/plugins`; undefined if it is not. Pure. */
  directory(metadata: VolumeMetadata, mode: DiskMode): string | undefined;
  /** The stages on this node, relative to `ROOT/plugins`. */
  list(pluginsDir: string, mode: DiskMode, host: VolumeHost): Promise<readonly string[]>;
  /** The name under which the attach controller knows a disk, if it attaches such disks. Pure. */
  uniqueName?(of: VolumeOfPod): string;
  /** The names that it may have for the disk of a stage. Pure. */
  uniqueNames?(directory: string): readonly string[];
  /** What a pod's volume is bound from if it is not staged. Pure. */
  unstaged?(of: VolumeOfPod): string;
  /** The disk may be gone at any time: only child processes with time limits look at what is on it. */
  readonly isRemote: boolean;
  /** A claim that grew has its filesystem grown on the node. */
  readonly grows?: boolean;
  /** The group of the first pod stays as long as another has the volume, as in Kubernetes. */
  readonly hasGroupOfFirst?: boolean;
  /** Resolves to the path of the device once it is there. */
  attach(
    request: DiskStage & { readonly of: VolumeOfPod; readonly devicePath: string },
    deps: SetUpDeps,
    options: Abortable,
  ): Promise<string>;
  /** Undoes `attach`, also one that failed. Removes what it keeps in the stage's directory. */
  detach(
    request: DiskStage & { readonly device: string | undefined },
    deps: TearDownDeps,
    options: Abortable,
  ): Promise<void>;
}

export type DiskMode = "Filesystem" | "Block";
