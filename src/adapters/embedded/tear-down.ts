import { existsSync, readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { cgroupHierarchies, cgroupPids, cgroupTree, removeCgroupDir } from "./cgroups.ts";
import { filterRemoval, portmapRemoval } from "./filter-removal.ts";
import type { EmbeddedDeps } from "./host.ts";
import { type EmbeddedOptions, type Layout, layoutOf } from "./layout.ts";
import { cniResults, logLinks, shimSocketPaths } from "./leftovers.ts";
import { restoreForwarding } from "./network.ts";
import { isOnHost, listProcesses, ownProcesses, type ProcessInfo, readProcess, signalProcess } from "./processes.ts";
import { readSettings, type StateSettings } from "./state-dir.ts";

/** Containers get this long after SIGTERM; `down` is for ending, so it does not wait for each pod's own grace. */
const GRACE_MS = 2000;
/** After SIGKILL only the kernel can be slow. */
const KILL_MS = 5000;
/** For one command: a busy iptables lock, a mount of a server that does not answer. */
const COMMAND_MS = 20_000;
const POLL_MS = 20;

export interface TearDownResult {
  /** What there was and is gone, in words. */
  readonly removed: string[];
  /** What could not be removed, with the reason. */
  readonly left: string[];
}

interface Teardown {
  readonly deps: EmbeddedDeps;
  readonly layout: Layout;
  readonly settings: StateSettings | undefined;
  readonly result: TearDownResult;
  readonly progress: (text: string) => void;
}

/**
 * Stops every pod, container and the private containerd, and leaves nothing behind. It works on what the kernel shows
 * and makes no call to containerd: one way, whether it is running, hung or dead. May be repeated; what a broken run left
 * is found by the names that follow from the state directory. The agent itself must have ended.
 */
export async function tearDown(
  deps: EmbeddedDeps,
  options: EmbeddedOptions & { progress: (text: string) => void },
): Promise<TearDownResult> {
  const plain = layoutOf(options);
  const settings = readSettings(plain);
  const layout = { ...plain, bridge: settings?.bridge ?? plain.bridge };
  const teardown: Teardown = { deps, layout, settings, progress: options.progress, result: { removed: [], left: [] } };
  const shimSockets = shimSocketPaths(layout);
  for (const step of [
    stopContainerd,
    stopWorkload,
    removeCgroups,
    removeMounts,
    removeServices,
    removeLinks,
    removeFilterRules,
  ]) {
    try {
      await step(teardown);
    } catch (error) {
      teardown.result.left.push(messageOf(error));
    }
  }
  removeFiles(teardown, [...shimSockets, ...cniResults(layout), ...logLinks(layout)]);
  await removeStateDir(teardown);
  return teardown.result;
}

/** First containerd, so that it neither restarts nor cleans up concurrently; the shims and their containers stay. */
async function stopContainerd({ deps, layout, result }: Teardown): Promise<void> {
  const containerd = ownProcesses(listProcesses(), layout).containerd.filter(({ pid }) => isOnHost(pid));
  for (const process of containerd) signalProcess(process, "SIGTERM");
  if (!(await allGone(deps.clock, containerd, GRACE_MS))) {
    for (const process of containerd) signalProcess(process, "SIGKILL");
    await allGone(deps.clock, containerd, KILL_MS);
  }
  report(result, containerd, "containerd");
}

/** SIGTERM to the first process of each container, SIGKILL to everything that is left, and the shims last: they reap. */
async function stopWorkload({ deps, layout, result, progress }: Teardown): Promise<void> {
  const { inits, shims } = ownProcesses(listProcesses(), layout);
  if (shims.length > 0) progress(`stopping ${shims.length} ${shims.length === 1 ? "pod" : "pods"}`);
  for (const process of inits) signalProcess(process, "SIGTERM");
  await allGone(deps.clock, inits, GRACE_MS);
  const { workload } = ownProcesses(listProcesses(), layout);
  for (const process of workload) signalProcess(process, "SIGKILL");
  await allGone(deps.clock, workload, KILL_MS);
  for (const process of shims) signalProcess(process, "SIGKILL");
  await allGone(deps.clock, shims, KILL_MS);
  report(result, shims, "pod");
}

/** Ends whatever escaped from the shims but is still in our cgroups, then removes those. */
async function removeCgroups({ deps, layout, result }: Teardown): Promise<void> {
  const hierarchies = cgroupHierarchies(deps.host.mountTable());
  const remaining = (): string[] => cgroupTree(hierarchies, layout.cgroupRoot);
  const before = remaining().length;
  if (before === 0) return;
  const until = deps.clock.now().mono + KILL_MS;
  for (;;) {
    for (const path of remaining()) {
      for (const pid of cgroupPids(path)) {
        const process = readProcess(pid);
        if (process !== undefined) signalProcess(process, "SIGKILL");
      }
    }
    for (const path of remaining()) removeCgroupDir(path);
    const left = remaining();
    if (left.length === 0) result.removed.push(`${before} cgroups`);
    else if (deps.clock.now().mono < until) {
      await deps.clock.sleep(POLL_MS);
      continue;
    } else result.left.push(...left.map((path) => `cgroup ${path}`));
    return;
  }
}

/** Root filesystems, volumes and network namespaces below the state directory, the deepest first. */
async function removeMounts({ deps, layout, result }: Teardown): Promise<void> {
  const below = (): string[] =>
    deps.host
      .mountTable()
      .map(({ target }) => target)
      .filter((target) => target.startsWith(`${layout.stateDir}/`))
      // Later lines of the table are mounted on top of earlier ones.
      .reverse();
  const before = below();
  if (before.length === 0) return;
  await deps.host.exec("umount", ["--", ...before], { timeoutMs: COMMAND_MS });
  // Busy or not answering (a dead NFS server): take it out of the tree, the kernel ends it with its last user.
  const busy = below();
  if (busy.length > 0) await deps.host.exec("umount", ["--lazy", "--", ...busy], { timeoutMs: COMMAND_MS });
  const left = below();
  result.removed.push(`${before.length - left.length} mounts`);
  result.left.push(...left.map((target) => `mount ${target}`));
}

/** The forwardings and the addresses of services. */
async function removeServices({ deps, layout, result }: Teardown): Promise<void> {
  // Without the program there is no table of ours.
  const nft = (...args: readonly string[]) =>
    deps.host.exec("nft", args, { timeoutMs: COMMAND_MS }).catch(() => undefined);
  const table = ["table", "ip", layout.name];
  if ((await nft("list", ...table))?.code === 0) {
    const removed = await nft("delete", ...table);
    if (removed?.code === 0) result.removed.push(`table ${layout.name} of nftables`);
    else result.left.push(`table ${layout.name} of nftables: ${removed?.stderr.trim()}`);
  }
  const link = join("/sys/class/net", layout.serviceLink);
  if (!existsSync(link)) return;
  await deps.host.exec("ip", ["link", "delete", layout.serviceLink], { timeoutMs: COMMAND_MS });
  if (existsSync(link)) result.left.push(`network interface ${layout.serviceLink}`);
  else result.removed.push(`link ${layout.serviceLink}`);
}

/** The bridge and the host ends of the pods' cables. */
async function removeLinks({ deps, layout, result }: Teardown): Promise<void> {
  const link = (name: string): string => join("/sys/class/net", name);
  if (!existsSync(join(link(layout.bridge), "bridge"))) return;
  const names = [...readdirSync(join(link(layout.bridge), "brif")), layout.bridge];
  for (const name of names) await deps.host.exec("ip", ["link", "delete", name], { timeoutMs: COMMAND_MS });
  const left = names.filter((name) => existsSync(link(name)));
  if (!left.includes(layout.bridge)) result.removed.push(`bridge ${layout.bridge}`);
  result.left.push(...left.map((name) => `network interface ${name}`));
}

async function removeFilterRules({ deps, layout, result }: Teardown): Promise<void> {
  for (const family of ["iptables", "ip6tables"]) {
    const own = await changeRules({ deps, layout }, family, (saved) => filterRemoval(saved, layout.name));
    if (own?.code === 0) result.removed.push(`${own.count} ${family} ${own.count === 1 ? "rule" : "rules"}`);
    else if (own !== undefined) result.left.push(`${family} rules: ${own.stderr.trim()}`);
    // If it is refused, another network has begun to use it.
    await changeRules({ deps, layout }, family, portmapRemoval);
  }
}

/** Feeds a script that is made from the rules of now to `iptables-restore`, which does all of it or nothing. */
async function changeRules(
  { deps, layout }: Pick<Teardown, "deps" | "layout">,
  family: string,
  scriptFor: (saved: string) => string,
): Promise<{ code: number | undefined; stderr: string; count: number } | undefined> {
  const saved = await deps.host.exec(`${family}-save`, [], { timeoutMs: COMMAND_MS });
  const script = scriptFor(saved.stdout);
  if (script === "") return undefined;
  // Not in the state directory, which may be gone already.
  const file = join(tmpdir(), `${layout.name}-${family}-${process.pid}`);
  await writeFile(file, script, { flag: "wx", mode: 0o600 });
  const restore = ["--wait", "10", "--noflush", file];
  const { code, stderr } = await deps.host.exec(`${family}-restore`, restore, { timeoutMs: COMMAND_MS });
  await unlink(file);
  return { code, stderr, count: script.match(/^-D /gm)?.length ?? 0 };
}

/** The directory goes only if it carries our mark: a mistyped path must not cost anybody's files. */
async function removeStateDir({ deps, layout, settings, result }: Teardown): Promise<void> {
  if (settings === undefined) {
    if (existsSync(layout.stateDir)) result.left.push(`${layout.stateDir}: not a state directory of kubelet-ts`);
    return;
  }
  try {
    await deps.host.removeTree(layout.stateDir);
    result.removed.push(layout.stateDir);
  } catch (error) {
    result.left.push(`${layout.stateDir}: ${messageOf(error)}`);
  }
  for (const path of settings.newDirs) removeIfEmpty(path);
  if (restoreForwarding(settings.forwarding)) result.removed.push("IP forwarding");
}

function removeFiles({ result }: Teardown, paths: readonly string[]): void {
  for (const path of paths) {
    try {
      unlinkSync(path);
    } catch (error) {
      if (existsSync(path)) result.left.push(`${path}: ${messageOf(error)}`);
    }
  }
  if (paths.length > 0) result.removed.push(`${paths.length} links and sockets`);
}

function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Somebody else uses it by now, or it was never made.
  }
}

function isAlive(process: ProcessInfo): boolean {
  return readProcess(process.pid)?.startTime === process.startTime;
}

/** Resolves to true as soon as all of them have ended, to false after the time limit. */
async function allGone(clock: Clock, processes: readonly ProcessInfo[], limitMs: number): Promise<boolean> {
  const until = clock.now().mono + limitMs;
  while (processes.some(isAlive)) {
    if (clock.now().mono >= until) return false;
    await clock.sleep(POLL_MS);
  }
  return true;
}

function report(result: TearDownResult, processes: readonly ProcessInfo[], what: string): void {
  const alive = processes.filter(isAlive);
  const ended = processes.length - alive.length;
  if (ended > 0) result.removed.push(`${ended} ${what}${ended === 1 ? "" : "s"}`);
  result.left.push(...alive.map(({ pid, argv }) => `process ${pid} (${argv[0] ?? what})`));
}
