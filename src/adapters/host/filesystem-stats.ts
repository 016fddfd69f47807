import { statfs } from "node:fs/promises";
import { hostError } from "./host-error.ts";

/** The size of a filesystem, and what is left of it for users other than root. */
export interface FilesystemStats {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** Measures the filesystem that holds `path`; only for paths of the system, never for one that a user chose. */
export async function filesystemStats(path: string): Promise<FilesystemStats> {
  try {
    const { blocks, bavail, bsize } = await statfs(path);
    return { capacityBytes: blocks * bsize, availableBytes: bavail * bsize };
  } catch (error) {
    throw hostError(`measure filesystem of ${path}`, error);
  }
}
