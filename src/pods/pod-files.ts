/** File work on the host, all of it below the agent's own directories. */
export interface PodFiles {
  /** With its parents; the mode is set whatever the umask is. */
  makeDir(path: string, mode: number): Promise<void>;
  writeFile(path: string, text: string, mode: number): Promise<void>;
  /** Replaces a file atomically (temporary file, sync, rename), for what must survive a crash. Mode 0600. */
  replaceFile(path: string, text: string): Promise<void>;
  /** The last bytes of a file; empty when it does not exist. */
  readTail(path: string, bytes: number): Promise<string>;
  /** A plain file at a path that a user chose inside a volume, never outside it; undefined when it does not exist. */
  readInside(root: string, path: string, maxBytes: number): Promise<string | undefined>;
  /** Names in a directory; none when it does not exist. */
  list(path: string): Promise<readonly string[]>;
  /** Replaces what is there. */
  symlink(target: string, path: string): Promise<void>;
  /** Where a link points to; undefined when there is no link. */
  readLink(path: string): Promise<string | undefined>;
  /** Succeeds when there is no such file. */
  removeFile(path: string): Promise<void>;
  /** Refuses to enter mounts; succeeds when there is no such directory. */
  removeTree(path: string): Promise<void>;
}
