import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Layout } from "../../../src/adapters/embedded/layout.ts";

/** Everything on the machine that carries the names of one state directory, by kind. */
export interface Traces {
  readonly mounts: readonly string[];
  readonly processes: readonly string[];
  readonly cgroups: readonly string[];
  readonly links: readonly string[];
  readonly rules: readonly string[];
  readonly files: readonly string[];
}

export const NO_TRACES: Traces = { mounts: [], processes: [], cgroups: [], links: [], rules: [], files: [] };

/** Looks at the kernel's own tables and asks neither the agent nor containerd. */
export function traces(layout: Layout): Traces {
  const { stateDir, name, bridge, serviceLink } = layout;
  const isOurs = (text: string): boolean => text.includes(stateDir) || text.includes(name) || text.includes(bridge);
  return {
    mounts: readFileSync("/proc/self/mountinfo", "utf8").split("\n").filter(isOurs),
    processes: processes()
      .filter(({ command, cgroup }) => isOurs(command) || isOurs(cgroup))
      .map(({ pid }) => pid),
    cgroups: ["/sys/fs/cgroup", ...subdirectories("/sys/fs/cgroup")]
      .map((hierarchy) => join(hierarchy, layout.cgroupRoot))
      .filter((path) => existsSync(path)),
    links: [
      ...(existsSync(`/sys/class/net/${bridge}`) ? [bridge, ...list(`/sys/class/net/${bridge}/brif`)] : []),
      ...(existsSync(`/sys/class/net/${serviceLink}`) ? [serviceLink] : []),
    ],
    rules: [["iptables-save"], ["ip6tables-save"], ["nft", "list", "tables"]].flatMap(([program = "", ...args]) =>
      // Without nft there is no table of ours.
      (spawnSync(program, args, { encoding: "utf8" }).stdout ?? "").split("\n").filter(isOurs),
    ),
    files: [
      ...(existsSync(stateDir) ? [stateDir] : []),
      ...["/var/log/containers", "/var/lib/cni/results", "/var/lib/cni/networks"].flatMap((directory) =>
        list(directory).filter(isOurs),
      ),
    ],
  };
}

/** Processes in a cgroup whose path has these words. */
export function pidsInCgroup(words: string): number[] {
  return processes()
    .filter(({ cgroup }) => cgroup.includes(words))
    .map(({ pid }) => Number(pid));
}

function processes(): { pid: string; command: string; cgroup: string }[] {
  return list("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        // Ended, and only its parent has not looked yet.
        if (/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"))) return [];
        return [{ pid, command, cgroup: readFileSync(`/proc/${pid}/cgroup`, "utf8") }];
      } catch {
        // It ended while we looked.
        return [];
      }
    });
}

function subdirectories(path: string): string[] {
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [join(path, entry.name)] : [],
  );
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
