/** One place where a pod keeps data on its node. */
export interface StoragePart {
  /**
   * An emptyDir, or another volume with files, by its name; the log or the writable layer of a container by the
   * container's; a file of the agent that containers can write to (`etc-hosts`, `termination-log`).
   */
  readonly kind: "emptyDir" | "volume" | "log" | "layer" | "file";
  readonly name: string;
  /** Of a terminated instance of a container: on disk, but not counted against limits. Comes after that of a running one. */
  readonly isOld?: boolean;
  /** It takes memory and not disk. */
  readonly isMemory: boolean;
  /** Bytes that it may hold; missing without a limit. */
  readonly sizeLimit?: number;
  /** Where a volume is that has a filesystem of its own to ask for its space. */
  readonly path?: string;
  /** Its filesystem is that of a server or of a disk that may be gone: it is asked by a child process with a time limit. */
  readonly isRemote?: boolean;
  /** Its driver counts its space. */
  readonly hasDriver?: boolean;
  /** The claim that a volume is of: it is as full as its filesystem. */
  readonly claim?: string;
  /** Missing until it was measured once. */
  readonly usage?: StorageUsage;
}

/** What a place holds, when that was found out (wall-clock milliseconds), and how. */
export interface StorageUsage {
  readonly bytes: number;
  readonly inodes: number;
  readonly at: number;
  /** Counted by the filesystem for the directory or as a whole, by looking at every file, or by the runtime. */
  readonly by: "quota" | "filesystem" | "walk" | "runtime";
}

/** What a pod keeps on its node, as far as it is known. */
export interface PodStorage {
  readonly parts: readonly StoragePart[];
  /** The sum of what is on disk but for terminated containers: what counts as ephemeral-storage. */
  readonly bytes: number;
  readonly inodes: number;
  /** Whether each part was measured since it was asked for; else some of it is older, or missing. */
  readonly isFresh: boolean;
}
