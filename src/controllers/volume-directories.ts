/** Directories for volumes, all in one place that nothing else uses. */
export interface VolumeDirectories {
  /** Absolute path of the place. */
  readonly root: string;
  /** Creates the directory of a volume that every user may write to; one that is there is left as it is. */
  make(name: string): Promise<void>;
  /** Removes the directory of a volume with all in it; follows no link and enters no mount. May be repeated. */
  remove(name: string): Promise<void>;
}
