/** One place where a pod keeps data on its node. */
export interface StoragePart {
  /** An emptyDir, or another volume with files, by its name; the log or the writable layer of a container by the container's. */
  readonly kind: "emptyDir" | "volume" | "log" | "layer";
  readonly name: string;
  /** It takes memory and not disk. */
  readonly isMemory: boolean;
  /** Bytes that it may hold; missing without a limit. */
  readonly sizeLimit?: number;
  /** Where a volume is that has a filesystem of its own to ask for its space. */
  readonly path?: string;
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
  /** The sum of all that is on disk: what counts as ephemeral-storage. */
  readonly bytes: number;
  readonly inodes: number;
  /** Whether each part was measured since it was asked for; else some of it is older, or missing. */
  readonly isFresh: boolean;
}
