import type { Abortable } from "../../lib/abort.ts";
import type { CgroupMount } from "./cgroups.ts";
import type { ExecOptions, ExecResult } from "./exec.ts";
import type { FileInfo } from "./files.ts";
import type { Lock, LockHolder } from "./lock.ts";
import type { HostAddress, MachineInfo } from "./machine.ts";
import type { MountEntry } from "./mount-table.ts";
import type { MountRequest } from "./mounts.ts";
import type { PathKind } from "./path-kind.ts";
import type { ProcessIdentity } from "./processes.ts";
import type { RemoveOptions } from "./remove-tree.ts";

/** The machine as the agent sees it. Features name the few methods they need; `LinuxHost` has them all. */
export interface Host {
  /** The one way to remove recursively: see `remove-tree.ts`. Rejects with `Mounted` rather than touch a mount. */
  removeTree(path: string, options?: RemoveOptions): Promise<void>;

  mount(request: MountRequest): Promise<void>;
  mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void>;
  unmount(path: string, options?: { lazy?: boolean }): Promise<void>;
  /** Makes a directory a shared mount, bound onto itself, unless it lies on one; true if it did. */
  makeShared(path: string): Promise<boolean>;
  mountTable(): readonly MountEntry[];
  /** At least the mounts at or below a path. */
  mountsNear(path: string): readonly MountEntry[];
  /** True when something is mounted at exactly this path of the agent's own. */
  isMountPoint(path: string): boolean;

  exec(file: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  lock(path: string): Promise<Lock>;
  lockHolder(path: string): Promise<LockHolder | undefined>;

  makeDir(path: string, mode: number): Promise<void>;
  readSmall(path: string): string | undefined;
  symlink(target: string, path: string): Promise<void>;
  exists(path: string): Promise<boolean>;
  stat(path: string): Promise<FileInfo | undefined>;
  list(path: string): Promise<readonly string[]>;
  rename(from: string, to: string): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  chown(path: string, owner: { uid: number; gid: number }): Promise<void>;
  /** What is at a path that a user chose: asked by a child process, because it may hang. */
  kindOf(path: string, options: Partial<Abortable>): Promise<PathKind | undefined>;

  processStartTime(pid: number): string | undefined;
  isAlive(identity: ProcessIdentity): boolean;
  signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean;

  cgroupMounts(): readonly CgroupMount[];
  removeCgroup(path: string): Promise<void>;

  machineInfo(): MachineInfo;
  machine(): { cores: number; memoryBytes: number; addresses: readonly string[] };
  hostAddresses(): readonly HostAddress[];
  hostname(): string;
  isRoot(): boolean;
  /** Gives freed memory back to the system, in the background; does nothing where that cannot be. */
  trimMemory(): void;
}
