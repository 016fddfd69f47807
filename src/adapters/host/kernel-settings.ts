import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Settings of the kernel by their names (`vm.overcommit_memory`), as sysctl(8) has them. */
export interface KernelSettings {
  /** Throws if the kernel does not have it. */
  read(name: string): number;
  /** Throws if the kernel refuses it. */
  write(name: string, value: number): void;
}

/** The settings of this kernel; `root` is `/proc/sys`, or a directory that a test made. */
export function kernelSettings(root = "/proc/sys"): KernelSettings {
  const path = (name: string): string => join(root, name.replaceAll(".", "/"));
  return {
    read: (name) => Number(readFileSync(path(name), "latin1")),
    write: (name, value) => writeFileSync(path(name), String(value)),
  };
}
