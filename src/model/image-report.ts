/** Why an image is not removed. */
export type ImageKeepReason =
  /** A container, running or not, was created from it or mounts it. */
  | "inUse"
  /** A pod that may still start names it. */
  | "wanted"
  | "pulling"
  /** The runtime asks to keep it. */
  | "pinned"
  /** Sandboxes are made from it. */
  | "sandbox"
  /** The agent did not pull it, and is asked to keep such images: no registry is known to have it. */
  | "local"
  /** It was detected less than the minimum age ago. */
  | "young"
  /** Unused, but the disk has room. */
  | "spare";

/** Why an image is removed: it was unused for the maximum age, or the disk is too full. */
export type ImageRemoveReason = "age" | "space";

/** A filesystem of the runtime. */
export interface ReportedFilesystem {
  readonly mountpoint: string;
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** An image of the node, and what garbage collection would do with it. */
export interface ReportedImage {
  readonly id: string;
  /** Tags, or digests if it has no tag. */
  readonly names: readonly string[];
  readonly runtimeHandler?: string;
  readonly sizeBytes: number;
  /** Set if it would be removed now. */
  readonly remove?: ImageRemoveReason;
  /** Set if it would be kept. Images that are `spare` are removed next, in the order of the list. */
  readonly keep?: ImageKeepReason;
  /** Who uses it. */
  readonly by?: string;
  /** Milliseconds since the agent last saw it used, or first saw it. */
  readonly unusedMs?: number;
}

/** Removals since the agent started. */
export interface CollectedImages {
  readonly images: number;
  /** By the sizes that the runtime reports. */
  readonly bytes: number;
}

/** The images of the node as garbage collection judges them: those that go first, in order, then those that stay. */
export interface ImageReport {
  readonly images: readonly ReportedImage[];
  /** Absent if the runtime does not report it. */
  readonly imageFilesystem?: ReportedFilesystem;
  /** Absent if writable layers are on the image filesystem. */
  readonly containerFilesystem?: ReportedFilesystem;
  readonly usagePercent?: number;
  readonly highThresholdPercent: number;
  readonly lowThresholdPercent: number;
  readonly minimumAgeMs: number;
  /** 0 if images are never removed for their age. */
  readonly maximumAgeMs: number;
  /** What has to be freed now. */
  readonly bytesToFree: number;
  readonly collected: CollectedImages;
}
