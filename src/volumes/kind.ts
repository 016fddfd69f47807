import type { Abortable } from "../lib/abort.ts";
import type { Pod, Volume } from "../model/generated/types.ts";

/** What kinds of volumes may do to the machine. */
export interface VolumeHost {
  /** With its parents; the mode is set whatever the umask is. */
  makeDir(path: string, mode: number): Promise<void>;
  /** Creates an empty file if there is none. */
  makeFile(path: string, mode: number): Promise<void>;
  /** What is at a path, links followed; undefined when nothing is. Never hangs for long: a path may be a dead NFS mount. */
  kindOf(path: string, options: Abortable): Promise<PathKind | undefined>;
  mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void>;
  isMountPoint(path: string): Promise<boolean>;
  unmount(path: string): Promise<void>;
  removeTree(path: string): Promise<void>;
  /** Names in a directory; none when it does not exist. */
  list(path: string): Promise<readonly string[]>;
}

export type PathKind = "directory" | "file" | "socket" | "charDevice" | "blockDevice" | "other";

/** A volume of a pod, and the directory that is its own. */
export interface VolumeOfPod {
  readonly pod: Pod;
  readonly volume: Volume;
  /** `ROOT/pods/UID/volumes/PLUGIN/NAME`. */
  readonly directory: string;
}

/** One kind of volume: one file in `kinds/`, one line in `kinds/index.ts`. */
export interface VolumeKind {
  /** The directory name of the kind, `kubernetes.io~empty-dir`; empty for kinds that have no directory. */
  readonly plugin: string;
  handles(volume: Volume): boolean;
  /** Makes the volume ready. Safe to repeat: a volume that is ready stays as it is. */
  setUp(of: VolumeOfPod, host: VolumeHost, options: Abortable): Promise<void>;
  hostPath(of: VolumeOfPod): string;
  /** Takes down what is in the kind's own directory. Safe to repeat. */
  tearDown(directory: string, host: VolumeHost): Promise<void>;
}
