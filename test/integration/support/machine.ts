import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { MARK, PREFIX, tagOf } from "../../support/mark.ts";

/** Everything on the machine that a suite could leave behind, as readable words, each with the suite's mark if it shows. */
export type Machine = ReadonlyMap<string, string | undefined>;

/**
 * Made by mount(8), blkid(8), criu(8), ip-netns(8), iptables(8), mount.nfs(8), containerd's shims, CNI's plug-ins and
 * systemd's login manager at their first use on a machine, for good. What is inside these directories still counts.
 */
const OF_THE_SYSTEM = new Set([
  "/run/mount",
  "/run/blkid",
  "/run/criu.kdat",
  "/run/netns",
  "/run/xtables.lock",
  "/run/rpc.statd.lock",
  "/run/containerd",
  "/var/lib/cni",
  "/sys/fs/cgroup/user.slice",
]);
/** The folders of suites, below any temporary directory, and the names that a test containerd makes from them. */
const MARKED_PATH = new RegExp(`^.*?/${PREFIX}[A-Za-z0-9]{6}(?=/|$)`);
const MARKED_NAME = /\bkt(?:t|s-test)-([0-9a-f]{4})[0-9a-f]{4}\b/;

/** Looks at the machine; `marks` are the temporary directories of the suites of this run, which mark what they make. */
export function readMachine(marks: readonly string[]): Machine {
  const byTag = new Map(marks.map((mark) => [tagOf(mark), mark]));
  const processes = markedProcesses();
  const owners = new Map(processes.map(({ pid, mark }) => [pid, mark]));
  const machine = new Map<string, string | undefined>();
  const add = (what: string, mark: string | undefined): void => {
    const named = MARKED_PATH.exec(what.replace(/^\w+ /, ""))?.[0] ?? byTag.get(MARKED_NAME.exec(what)?.[1] ?? "");
    const owner = mark ?? named;
    machine.set(what, owner !== undefined && marks.includes(owner) ? owner : undefined);
  };
  for (const { pid, mark, command } of processes) {
    // Of another run on the same machine.
    if (marks.includes(mark)) add(`process ${pid} (${command})`, mark);
  }
  for (const target of mounts()) {
    if (!OF_THE_SYSTEM.has(target)) add(`mount ${target}`, undefined);
  }
  for (const folder of ["/run/netns", "/var/run/netns", "/run/cni"]) {
    for (const name of list(folder)) add(`${folder}/${name}`, undefined);
  }
  for (const name of list("/sys/class/net")) add(`network link ${name}`, undefined);
  for (const path of cgroups("/sys/fs/cgroup")) {
    const pids = processesOf(path);
    const mark = pids.map((pid) => owners.get(pid)).find((found) => found !== undefined && marks.includes(found));
    // Processes live there, and none is a suite's: a service of the machine came up meanwhile.
    const isLeft = pids.length === 0 && !OF_THE_SYSTEM.has(path);
    if (isLeft || mark !== undefined) add(`cgroup ${path}`, mark);
  }
  for (const rule of firewallRules()) add(`iptables ${rule}`, undefined);
  for (const folder of ["/var/lib", "/run", "/var/log/pods", "/var/log/containers", "/var/lib/cni/networks"]) {
    for (const path of list(folder).map((name) => join(folder, name))) {
      const target = attempt(() => readlinkSync(path)) ?? "";
      if (!OF_THE_SYSTEM.has(path)) add(`directory entry ${path}`, MARKED_PATH.exec(target)?.[0]);
    }
  }
  return machine;
}

/** Ends the processes of a suite that did not clean up, and unmounts what it mounted below its directory. */
export async function cleanUp(mark: string): Promise<void> {
  for (let round = 0; round < 20; round++) {
    const processes = markedProcesses().filter((one) => one.mark === mark);
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

/** All processes that some suite started. */
function markedProcesses(): { pid: number; mark: string; command: string }[] {
  return list("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) return [];
    const environment = attempt(() => readFileSync(`/proc/${pid}/environ`, "utf8"))?.split("\0");
    const mark = environment?.find((one) => one.startsWith(`${MARK}=`))?.slice(MARK.length + 1);
    if (mark === undefined) return [];
    const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim());
    return [{ pid, mark, command: command ?? "?" }];
  });
}

/** All cgroup directories: version 2, or every hierarchy of version 1. */
function cgroups(folder: string): string[] {
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true })) ?? [];
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name));
  return folders.flatMap((path) => [path, ...cgroups(path)]);
}

function processesOf(cgroup: string): number[] {
  const text = attempt(() => readFileSync(join(cgroup, "cgroup.procs"), "utf8")) ?? "";
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);
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
