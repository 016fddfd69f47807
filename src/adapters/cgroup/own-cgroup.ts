import { readKernelFile } from "../host/kernel-file.ts";

/** The cgroup of this process; undefined if it is in the topmost one, or if its CPU and memory are not counted together. */
export function ownCgroup(): string | undefined {
  return parseOwnCgroup(readKernelFile("/proc/self/cgroup") ?? "");
}

/** Parses /proc/self/cgroup, version 1 or 2. */
export function parseOwnCgroup(text: string): string | undefined {
  const lines = text.split("\n").map((line) => line.split(":"));
  const pathOf = (controller: string): string | undefined => {
    const found = lines.find(([, controllers]) => controllers?.split(",").includes(controller));
    return found?.slice(2).join(":");
  };
  const memory = pathOf("memory");
  const path = memory === undefined ? pathOf("") : pathOf("cpu") === memory ? memory : undefined;
  return path === "/" ? undefined : path;
}
