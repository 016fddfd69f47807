// `node --import tsx bench/memory-hog.ts [RUNS]`: a pod that takes 200 MB of memory a second, on this agent and on the Go
// kubelet of the same version: how long after the threshold its SIGTERM came, and whether the kernel was faster. All pods
// together are limited to 400 MiB, and evicted below 100 MiB: after the threshold there is half a second.
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import type { Pod } from "../src/model/generated/types.ts";
import { TEST_IMAGES, TestContainerd } from "../test/support/containerd.ts";
import { TestControlPlane } from "../test/support/control-plane.ts";
import { makeCgroup, savedSysctls } from "../test/support/go-kubelet.ts";
import { ComparedAgent, type Contestant, containerdDir, goKubelet, nodeOf, removeAgentFiles } from "./compare-agent.ts";
import { isReady, Watched } from "./compare-cluster.ts";
import { median } from "./table.ts";

const RUNS = Number(process.argv[2] ?? 10);
const MI = 2 ** 20;
const LIMIT = 400 * MI;
const THRESHOLD = 100 * MI;
const POLL_MS = 4;
/** How long a run may take: the original acts within 10 s. */
const RUN_MS = 45_000;
const CONFIG = {
  enforceNodeAllocatable: ["pods"],
  kubeReserved: { memory: `${Math.floor((totalmem() - LIMIT) / 1024)}Ki` },
  evictionHard: { "memory.available": `${THRESHOLD / MI}Mi` },
  evictionPressureTransitionPeriod: "1s",
};
/** 10 MB every 50 ms, each held by a process of its own; SIGTERM is recorded and ends all. */
const HOG = `trap 'echo told; exit 0' TERM
echo began
(while :; do dd if=/dev/zero bs=10000000 count=1 2>/dev/null | sleep 3600 & usleep 36000; done) &
while :; do wait; done`;

interface Run {
  /** From the threshold to SIGTERM in milliseconds; undefined if it never came. */
  readonly told: number | undefined;
  /** From the threshold to the first process that the kernel killed; undefined if it killed none before SIGTERM. */
  readonly killed: number | undefined;
  readonly megabytesPerSecond: number;
}

function hogPod(name: string, node: string): Pod {
  const image = { image: TEST_IMAGES.busybox, imagePullPolicy: "Never" };
  return {
    metadata: { name, namespace: "default" },
    spec: {
      nodeName: node,
      restartPolicy: "Never",
      terminationGracePeriodSeconds: 30,
      // One without a request is not admitted while the pressure of the run before is still reported.
      containers: [
        { ...image, name: "main", command: ["/bin/sh", "-c", HOG], resources: { requests: { memory: "1Mi" } } },
      ],
    },
  };
}

/** Bytes in use by all pods, as both agents count them. */
function workingSet(cgroup: string): number {
  const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
  const dir = join("/sys/fs/cgroup", isUnified ? "" : "memory", cgroup, "kubepods");
  try {
    const usage = Number(readFileSync(join(dir, isUnified ? "memory.current" : "memory.usage_in_bytes"), "utf8"));
    const name = isUnified ? "inactive_file" : "total_inactive_file";
    const stat = readFileSync(join(dir, "memory.stat"), "utf8");
    return usage - Number(new RegExp(`^${name} (\\d+)`, "m").exec(stat)?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** Processes that the kernel killed for lack of memory since the boot. */
function kernelKills(): number {
  return Number(/^oom_kill (\d+)/m.exec(readFileSync("/proc/vmstat", "utf8"))?.[1] ?? 0);
}

/** The wall-clock time at which a container wrote a line; undefined if it did not. */
function writtenAt(logs: string, pod: string, line: string): number | undefined {
  const folder = existsSync(logs) ? readdirSync(logs).find((name) => name.startsWith(`default_${pod}_`)) : undefined;
  const file = folder === undefined ? "" : join(logs, folder, "main/0.log");
  const found = existsSync(file)
    ? new RegExp(`^(\\S+) stdout \\S+ ${line}$`, "m").exec(readFileSync(file, "utf8"))
    : null;
  return found === null ? undefined : Date.parse(found[1] ?? "");
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function watchRun(agent: ComparedAgent, name: string, cgroup: string): Promise<Run> {
  const until = Date.now() + RUN_MS;
  const before = kernelKills();
  const baseline = workingSet(cgroup);
  let [crossed, killed, polls]: [number | undefined, number | undefined, number] = [undefined, undefined, 0];
  for (;;) {
    await pause(POLL_MS);
    const now = Date.now();
    if (crossed === undefined && workingSet(cgroup) > LIMIT - THRESHOLD) crossed = now;
    if (killed === undefined && kernelKills() > before) killed = now;
    if (polls++ % 8 !== 0 || crossed === undefined) {
      if (now > until) throw new Error(`${name} did not reach the threshold`);
      continue;
    }
    const told = writtenAt(agent.logs, name, "told");
    if (told === undefined && now < until) continue;
    const began = writtenAt(agent.logs, name, "began") ?? Number.NaN;
    const rate = (LIMIT - THRESHOLD - baseline) / 1e6 / ((crossed - began) / 1000);
    const isKernelFirst = killed !== undefined && (told === undefined || killed < told);
    return {
      told: told === undefined ? undefined : told - crossed,
      killed: isKernelFirst && killed !== undefined ? killed - crossed : undefined,
      megabytesPerSecond: rate,
    };
  }
}

async function measure(
  who: Contestant,
  site: { plane: TestControlPlane; containerd: TestContainerd; dir: string },
  watched: Watched,
): Promise<readonly Run[]> {
  const node = nodeOf(who);
  const hasPressure = (): boolean =>
    watched.node(node)?.status?.conditions?.some((one) => one.type === "MemoryPressure" && one.status === "True") ??
    true;
  const agent = await ComparedAgent.start(who, site, CONFIG);
  const runs: Run[] = [];
  try {
    await watched.until("the node is ready", () => isReady(watched.node(node)));
    for (let at = 0; at < RUNS; at++) {
      await watched.until("there is no pressure", () => !hasPressure());
      const name = `${node}-hog-${at}`;
      await watched.create(hogPod(name, node));
      const run = await watchRun(agent, name, site.containerd.cgroupParent);
      runs.push(run);
      process.stderr.write(`${who} ${JSON.stringify(run)}\n`);
      await watched.remove(name);
      await watched.until(`${name} is gone`, () => watched.pod(name) === undefined);
    }
  } finally {
    await agent.stop();
  }
  return runs;
}

function show(who: Contestant, runs: readonly Run[]): void {
  const told = runs.flatMap((run) => run.told ?? []);
  const first = runs.filter(({ killed }) => killed === undefined).length;
  const rate = median(runs.map(({ megabytesPerSecond }) => megabytesPerSecond));
  process.stdout.write(
    `${who.padEnd(10)} at ${rate.toFixed(0)} MB/s: SIGTERM ${median(told).toFixed(0)} ms after the threshold ` +
      `(${Math.min(...told).toFixed(0)}–${Math.max(...told).toFixed(0)}), before the kernel in ${first} of ${runs.length}\n`,
  );
}

const restoreSysctls = savedSysctls();
const binDir = containerdDir();
const plane = await TestControlPlane.start({ controllers: true });
const containerd = await TestContainerd.start(binDir === undefined ? {} : { binDir });
const dir = mkdtempSync(join(tmpdir(), "khog-"));
const watched = new Watched(plane.clients().calls);
try {
  plane.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=60s");
  makeCgroup(containerd.cgroupParent);
  for (const who of goKubelet() === undefined ? (["kubelet-ts"] as const) : (["kubelet-ts", "go"] as const))
    show(who, await measure(who, { plane, containerd, dir }, watched));
} finally {
  watched.close();
  await containerd.stop();
  await plane.stop();
  removeAgentFiles(dir);
  restoreSysctls();
}
