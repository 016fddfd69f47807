import { hostname } from "node:os";
import type { Abortable } from "../../lib/abort.ts";
import type { Clock } from "../../lib/clock.ts";
import { type CgroupMount, cgroupMountsIn, removeCgroup } from "./cgroups.ts";
import { type ExecOptions, type ExecResult, exec } from "./exec.ts";
import { files } from "./files.ts";
import { type Lock, type LockHolder, lockHolder, takeLock } from "./lock.ts";
import { type HostAddress, hostAddresses, type MachineInfo, machineInfo } from "./machine.ts";
import { type MountEntry, readMountsNear, readMountTable } from "./mount-table.ts";
import { type MountRequest, Mounts, mountAt } from "./mounts.ts";
import { kindOf, type PathKind } from "./path-kind.ts";
import type { Host } from "./port.ts";
import { isAlive, killProcess, type ProcessIdentity, processStartTime } from "./processes.ts";
import { type RemoveOptions, removeTree } from "./remove-tree.ts";
import { SystemCalls } from "./system-calls.ts";
import { chooseTreeAccess, type TreeAccess } from "./tree-access.ts";

export type { CgroupMount } from "./cgroups.ts";
export type { ExecOptions, ExecResult } from "./exec.ts";
export type { FileInfo } from "./files.ts";
export { HostError, type HostErrorCode } from "./host-error.ts";
export type { Lock, LockHolder } from "./lock.ts";
export type { HostAddress, MachineInfo } from "./machine.ts";
export type { MountEntry } from "./mount-table.ts";
export type { MountRequest } from "./mounts.ts";
export type { PathKind } from "./path-kind.ts";
export type { Host } from "./port.ts";
export type { ProcessIdentity } from "./processes.ts";

/** The Linux machine that this process runs on. Holds nothing but the clock; all state is the kernel's. */
export class LinuxHost implements Host {
  private readonly clock: Clock;
  private readonly mounts: Mounts;
  private access: Promise<TreeAccess> | undefined;

  readonly makeDir = files.makeDir;
  readonly readSmall = files.readSmall;
  readonly symlink = files.symlink;
  readonly exists = files.exists;
  readonly stat = files.stat;
  readonly list = files.list;
  readonly rename = files.rename;
  readonly chmod = files.chmod;
  readonly chown = files.chown;

  private hierarchies: readonly CgroupMount[] | undefined;

  constructor({ clock }: { clock: Clock }) {
    this.clock = clock;
    this.mounts = new Mounts(clock);
  }

  async removeTree(path: string, options: RemoveOptions = {}): Promise<void> {
    this.access ??= chooseTreeAccess();
    await removeTree({ access: await this.access, mountTable: readMountsNear }, path, options);
  }

  mount(request: MountRequest): Promise<void> {
    return this.mounts.mount(request);
  }

  mountTmpfs(path: string, options: { sizeBytes?: number; mode: number }): Promise<void> {
    return this.mounts.mount({ kind: "tmpfs", target: path, ...options });
  }

  unmount(path: string, options: { lazy?: boolean } = {}): Promise<void> {
    return this.mounts.unmount(path, options);
  }

  makeShared(path: string): Promise<boolean> {
    return this.mounts.makeShared(path);
  }

  mountTable(): readonly MountEntry[] {
    return readMountTable();
  }

  mountsNear(path: string): readonly MountEntry[] {
    return readMountsNear(path);
  }

  isMountPoint(path: string): boolean {
    return mountAt(path) !== undefined;
  }

  exec(file: string, args: readonly string[], options: ExecOptions = {}): Promise<ExecResult> {
    return exec(this.clock, [file, ...args], options);
  }

  lock(path: string): Promise<Lock> {
    return takeLock({ clock: this.clock }, path);
  }

  lockHolder(path: string): Promise<LockHolder | undefined> {
    return lockHolder({ clock: this.clock }, path);
  }

  kindOf(path: string, options: Partial<Abortable>): Promise<PathKind | undefined> {
    return kindOf(this.clock, path, options);
  }

  processStartTime(pid: number): string | undefined {
    return processStartTime(pid);
  }

  isAlive(identity: ProcessIdentity): boolean {
    return isAlive(identity);
  }

  signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
    return killProcess(identity, signal);
  }

  /** Read once: they stay as the machine's start made them, and every pod that goes asks for them. */
  cgroupMounts(): readonly CgroupMount[] {
    this.hierarchies ??= cgroupMountsIn(readMountTable());
    return this.hierarchies;
  }

  removeCgroup(path: string): Promise<void> {
    return removeCgroup({ mounts: this.cgroupMounts(), clock: this.clock }, path);
  }

  machineInfo(): MachineInfo {
    return machineInfo();
  }

  machine(): { cores: number; memoryBytes: number; addresses: readonly string[] } {
    const { cores, memoryBytes } = machineInfo();
    return { cores, memoryBytes, addresses: hostAddresses().map(({ address }) => address) };
  }

  hostAddresses(): readonly HostAddress[] {
    return hostAddresses();
  }

  hostname(): string {
    return hostname();
  }

  isRoot(): boolean {
    return process.getuid?.() === 0;
  }

  trimMemory(): void {
    // Only glibc has it: elsewhere there is nothing to do.
    SystemCalls.load()
      .then((calls) => calls?.trimMemory())
      .catch(() => undefined);
  }
}
