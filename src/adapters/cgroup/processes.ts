import { existsSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "../../lib/errors.ts";
import type { CgroupMount } from "../host/cgroups.ts";
import { type Hierarchies, hierarchiesOf, makeCgroup } from "./hierarchy.ts";
import { directoryOf } from "./values.ts";

/** The processes of the machine and the cgroups that they are in. */
export class CgroupProcesses {
  readonly ownPid = process.pid;
  private readonly hierarchies: Hierarchies | undefined;

  /** `proc` is `/proc`, or a directory that a test made. */
  constructor(
    mounts: readonly CgroupMount[],
    private readonly proc = "/proc",
  ) {
    this.hierarchies = hierarchiesOf(mounts);
  }

  /** False if this process has a PID namespace of its own; undefined if it must not read the one of init. */
  sharesInitNamespace(): boolean | undefined {
    try {
      return readlinkSync(join(this.proc, "1/ns/pid")) === readlinkSync(join(this.proc, "self/ns/pid"));
    } catch {
      return undefined;
    }
  }

  /** True if the process is in the cgroup, in every hierarchy that has it. */
  isIn(pid: number, path: string): boolean {
    const directories = this.directories(path);
    return directories.length > 0 && directories.every((directory) => pidsIn(directory).includes(pid));
  }

  /** Creates the cgroup where it is missing, and moves the process. One that ended meanwhile is success. */
  move(pid: number, path: string): void {
    if (this.hierarchies === undefined) throw new Error("no cgroup hierarchy is mounted");
    makeCgroup(this.hierarchies, path);
    for (const directory of this.directories(path)) {
      try {
        writeFileSync(join(directory, "cgroup.procs"), String(pid));
      } catch (error) {
        if (errnoOf(error) !== "ESRCH") throw error;
      }
    }
  }

  /** Processes of the root cgroup, without the first one and kernel threads, which have no executable. */
  rootProcesses(): readonly number[] {
    const root = this.hierarchies && directoryOf(this.hierarchies, "memory", "/");
    if (root === undefined) return [];
    return pidsIn(root).filter((pid) => pid > 1 && !this.isKernelThread(pid));
  }

  private directories(path: string): string[] {
    const { hierarchies } = this;
    if (hierarchies === undefined) return [];
    const roots =
      hierarchies.version === 2 ? [hierarchies.root] : hierarchies.mounts.map(({ mountpoint }) => mountpoint);
    return roots.map((root) => join(root, path)).filter((directory) => existsSync(directory));
  }

  private isKernelThread(pid: number): boolean {
    try {
      readlinkSync(join(this.proc, String(pid), "exe"));
      return false;
    } catch (error) {
      return errnoOf(error) === "ENOENT";
    }
  }
}

function pidsIn(directory: string): number[] {
  try {
    return readFileSync(join(directory, "cgroup.procs"), "latin1").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
