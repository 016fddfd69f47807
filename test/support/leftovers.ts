import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";

/** The names by which everything of one test containerd can be found on the machine. */
export interface Leftovers {
  readonly dir: string;
  readonly socket: string;
  readonly bridge: string;
  /** Cgroup path from the root of each hierarchy. */
  readonly cgroup: string;
}

const CGROUP_MOUNT = "/sys/fs/cgroup";

/** Ends and removes what a containerd left behind: shims, container processes, mounts, bridge, cgroups. */
export async function removeLeftovers(what: Leftovers): Promise<void> {
  const cgroups = cgroupsOf(what.cgroup);
  const busy = (): number[] => [...shimsOf(what.socket), ...cgroups.flatMap(processesIn)];
  for (let round = 0; round < 100; round++) {
    const pids = busy();
    if (pids.length === 0) break;
    for (const pid of pids) tryTo(() => process.kill(pid, "SIGKILL"));
    await pause(20);
  }
  for (const target of mountsBelow(what.dir).reverse()) spawnSync("umount", ["--lazy", target]);
  if (existsSync(`/sys/class/net/${what.bridge}`)) spawnSync("ip", ["link", "delete", what.bridge]);
  for (let round = 0; round < 50; round++) {
    for (const dir of cgroups) removeCgroup(dir);
    if (!cgroups.some((dir) => existsSync(dir))) break;
    await pause(20);
  }
}

/** What is still there of a stopped containerd; empty when it was cleaned up. */
export function findLeftovers(what: Leftovers): string[] {
  return [
    ...shimsOf(what.socket).map((pid) => `process ${pid}`),
    ...mountsBelow(what.dir).map((target) => `mount ${target}`),
    ...(existsSync(`/sys/class/net/${what.bridge}`) ? [`bridge ${what.bridge}`] : []),
    ...cgroupsOf(what.cgroup).map((dir) => `cgroup ${dir}`),
    ...(existsSync(what.dir) ? [`directory ${what.dir}`] : []),
  ];
}

/** Shims know their containerd by the address on their command line. */
function shimsOf(socket: string): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    const args = tryTo(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")) ?? [];
    return (args[0] ?? "").includes("containerd-shim") && args.includes(socket);
  });
}

/** Targets of all mounts at or below a directory, parents first. */
function mountsBelow(dir: string): string[] {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  const targets = lines.map((line) => (line.split(" ")[4] ?? "").replaceAll("\\040", " "));
  return targets.filter((target) => target === dir || target.startsWith(`${dir}/`));
}

/** The cgroup's directories: one with cgroup v2, one in each hierarchy with v1. */
function cgroupsOf(cgroup: string): string[] {
  const roots = [CGROUP_MOUNT, ...subdirectories(CGROUP_MOUNT)];
  return roots.map((root) => join(root, cgroup)).filter((dir) => existsSync(dir));
}

function processesIn(dir: string): number[] {
  const text = tryTo(() => readFileSync(join(dir, "cgroup.procs"), "utf8")) ?? "";
  const own = text.split("\n").filter(Boolean).map(Number);
  return [...own, ...subdirectories(dir).flatMap(processesIn)];
}

function removeCgroup(dir: string): void {
  for (const child of subdirectories(dir)) removeCgroup(child);
  tryTo(() => rmdirSync(dir));
}

function subdirectories(dir: string): string[] {
  const entries = tryTo(() => readdirSync(dir, { withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(dir, entry.name));
}

/** Things vanish by themselves while this looks at them. */
function tryTo<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
