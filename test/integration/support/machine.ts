import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The environment variable by which every process that a suite started is known, however deep or detached. */
export const MARK = "KUBELET_TEST_MARK";

/** Everything on the machine that a suite could leave behind, as readable words. */
export type Machine = ReadonlySet<string>;

/** Made by mount(8), blkid(8), containerd's shims and CNI's plug-ins when they are first used on a machine, for good. */
const OF_THE_SYSTEM = new Set(["/run/mount", "/run/blkid", "/run/containerd", "/var/lib/cni"]);

/** Looks at the machine; `mark` is the suite's temporary directory, which marks its processes. */
export function readMachine(mark: string): Machine {
  return new Set([
    ...mounts().map((target) => `mount ${target}`),
    ...markedProcesses(mark).map(({ pid, command }) => `process ${pid} (${command})`),
    ...["/run/netns", "/var/run/netns", "/run/cni"].flatMap((folder) =>
      list(folder).map((name) => `${folder}/${name}`),
    ),
    ...list("/sys/class/net").map((name) => `network link ${name}`),
    ...cgroups("/sys/fs/cgroup")
      .filter((path) => !isForeign(path, mark))
      .map((path) => `cgroup ${path}`),
    ...firewallRules().map((rule) => `iptables ${rule}`),
    ...["/var/lib", "/run", "/var/log/pods", "/var/log/containers", "/var/lib/cni/networks"]
      .flatMap((folder) => list(folder).map((name) => join(folder, name)))
      .filter((path) => !OF_THE_SYSTEM.has(path))
      .map((path) => `directory entry ${path}`),
  ]);
}

/** What `after` has that `before` had not. */
export function newcomers(before: Machine, after: Machine): string[] {
  return [...after].filter((what) => !before.has(what));
}

/** Ends the processes of a suite that did not clean up, and unmounts what it mounted below its directory. */
export async function cleanUp(mark: string): Promise<void> {
  for (let round = 0; round < 20; round++) {
    const processes = markedProcesses(mark);
    if (processes.length === 0) break;
    for (const { pid } of processes) attempt(() => process.kill(pid, "SIGKILL"));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  for (const target of mounts().reverse()) {
    if (target.startsWith(`${mark}/`)) spawnSync("umount", ["--lazy", target], { stdio: "ignore" });
  }
}

function mounts(): string[] {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").trim().split("\n");
  return lines.map((line) => (line.split(" ")[4] ?? "").replaceAll("\\040", " "));
}

function markedProcesses(mark: string): { pid: number; command: string }[] {
  const found: { pid: number; command: string }[] = [];
  for (const name of list("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    if (!isMarked(pid, mark)) continue;
    const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim());
    found.push({ pid, command: command ?? "?" });
  }
  return found;
}

/** All cgroup directories: version 2, or every hierarchy of version 1. */
function cgroups(folder: string): string[] {
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
  return folders.flatMap((path) => [path, ...cgroups(path)]);
}

/** Processes live there, and none is the suite's: a service of the machine came up meanwhile. */
function isForeign(cgroup: string, mark: string): boolean {
  const text = attempt(() => readFileSync(join(cgroup, "cgroup.procs"), "utf8")) ?? "";
  const pids = text.split("\n").filter((line) => line !== "");
  return pids.length > 0 && !pids.some((pid) => isMarked(Number(pid), mark));
}

function isMarked(pid: number, mark: string): boolean {
  const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, "utf8"));
  return environment?.split("\0").includes(`${MARK}=${mark}`) === true;
}

function firewallRules(): string[] {
  const programs = ["/usr/sbin/iptables-save", "/sbin/iptables-save"].filter((path) => existsSync(path)).slice(0, 1);
  return programs.flatMap((program) => {
    const { stdout } = spawnSync(program, { encoding: "utf8" });
    let table = "";
    return (stdout ?? "").split("\n").flatMap((line) => {
      if (line.startsWith("*")) table = line.slice(1);
      // A built-in chain appears with its table; only chains of ours and rules can be left behind.
      if (line.startsWith("-A")) return [`${table} ${line}`];
      return line.startsWith(":") && / - \[/.test(line) ? [`${table} chain ${line.split(" ")[0]?.slice(1)}`] : [];
    });
  });
}

function list(folder: string): string[] {
  return attempt(() => readdirSync(folder)) ?? [];
}

/** Things come and go while this looks at them. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
