// Measures the agent against a bare CRI client on the same containerd, and prints a table and JSON. Not a test: it
// never fails because of a number. Run it by `npm run bench`, on a machine that does nothing else.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CriRuntime } from "../src/adapters/cri/cri-runtime.ts";
import type { ContainerStatus } from "../src/adapters/runtime/port.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { fixed } from "../src/lib/live.ts";
import { silent } from "../src/lib/log.ts";
import { BenchAgent, tearDown, timeCommand } from "./agent.ts";
import { measureLiveChanges, measureValidate } from "./config.ts";
import { measureDevices } from "./devices.ts";
import { measureImageGc } from "./gc.ts";
import { measureImages } from "./images.ts";
import { measureLifecycle } from "./lifecycle.ts";
import { measureLogs } from "./logs.ts";
import { measurePage } from "./page.ts";
import { measureProbes } from "./probes-share.ts";
import { RAW_CGROUP, rawBurst, rawPod, removeRaw, removeRawCgroup } from "./raw.ts";
import { measureRotation } from "./rotation.ts";
import { median, type Row, show } from "./table.ts";
import { measureTopology } from "./topology.ts";

const ROUNDS = 20;
const BURST = 30;
const BURST_ROUNDS = 3;
const SETTLE_MS = 2000;
const IDLE_SECONDS = 30;
const clock = new SystemClock();
const { signal } = new AbortController();
const work = mkdtempSync("/var/tmp/kubelet-bench-");
const state = join(work, "state");
const pods = join(work, "pods");
mkdirSync(pods);

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Writes a manifest as a careful user does (beside, then renamed); the answer is the time of the rename. */
function wantPod(name: string, command: readonly string[]): number {
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: "app", image: "kubelet.local/demo:1", command }],
    },
  };
  writeFileSync(join(work, `${name}.json`), JSON.stringify(pod));
  const at = Date.now();
  renameSync(join(work, `${name}.json`), join(pods, `${name}.json`));
  return at;
}

/** The newest container of a pod that satisfies the condition, waited for. */
async function awaitContainer(
  runtime: CriRuntime,
  name: string,
  accept: (status: ContainerStatus) => boolean,
): Promise<ContainerStatus> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const all = await runtime.listContainers({}, { signal });
    const own = all.filter(({ labels }) => labels["io.kubernetes.pod.name"]?.startsWith(`${name}-`));
    for (const { id } of own) {
      const status = await runtime.containerStatus(id, { signal }).catch(() => undefined);
      if (status !== undefined && accept(status)) return status;
    }
    if (Date.now() > deadline) throw new Error(`${name} does not come up`);
    await clock.sleep(20);
  }
}

async function emptied(runtime: CriRuntime): Promise<void> {
  while ((await runtime.listSandboxes({}, { signal })).length > 0) await clock.sleep(50);
}

async function measureRaw(runtime: CriRuntime): Promise<{ running: number; restart: number; concurrency: number }> {
  const places = { logs: join(work, "raw-logs"), cgroup: RAW_CGROUP };
  const times: Awaited<ReturnType<typeof rawPod>>[] = [];
  for (let i = 0; i < ROUNDS; i++) times.push(await rawPod(runtime, `raw-${i}`, places));
  await removeRaw(runtime);
  let best = { concurrency: 0, took: Number.POSITIVE_INFINITY };
  for (const concurrency of [2, 4, 8, 16]) {
    const names = Array.from({ length: BURST }, (_, i) => `raw-${concurrency}-${i}`);
    const took = await rawBurst(runtime, names, { places, concurrency });
    say(`raw burst of ${BURST} with ${concurrency} at a time: ${Math.round(took)} ms`);
    if (took < best.took) best = { concurrency, took };
    await removeRaw(runtime);
  }
  return { running: median(times.map((t) => t.running)), restart: median(times.map((t) => t.restart)), ...best };
}

async function measureFiles(runtime: CriRuntime): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    const at = wantPod(`file${i}`, ["sleep", "100000"]);
    const status = await awaitContainer(runtime, `file${i}`, ({ state }) => state === "running");
    times.push(status.startedAt - at);
    unlinkSync(join(pods, `file${i}.json`));
    await emptied(runtime);
  }
  return median(times);
}

async function measureCrashes(runtime: CriRuntime): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    wantPod(`crash${i}`, ["sh", "-c", "sleep 0.5; exit 1"]);
    const again = await awaitContainer(
      runtime,
      `crash${i}`,
      ({ attempt, startedAt }) => attempt === 1 && startedAt > 0,
    );
    const first = await awaitContainer(
      runtime,
      `crash${i}`,
      ({ attempt, finishedAt }) => attempt === 0 && finishedAt > 0,
    );
    times.push(again.startedAt - first.finishedAt);
    unlinkSync(join(pods, `crash${i}.json`));
    await emptied(runtime);
  }
  return median(times);
}

async function measureBurst(runtime: CriRuntime): Promise<number> {
  const began = Date.now();
  for (let i = 0; i < BURST; i++) wantPod(`burst${i}x`, ["sleep", "100000"]);
  // Seldom: whoever asks takes time from those who start. The times that count are the runtime's own.
  const running = async (): Promise<number> =>
    (await runtime.listContainers({}, { signal })).filter(({ state }) => state === "running").length;
  while ((await running()) < BURST) await clock.sleep(200);
  let last = 0;
  for (let i = 0; i < BURST; i++) {
    const status = await awaitContainer(runtime, `burst${i}x`, ({ state }) => state === "running");
    last = Math.max(last, status.startedAt);
  }
  return last - began;
}

/** In turn, since a machine's speed changes within minutes: the bare client alone, then the agent alone. */
async function measureBursts(runtime: CriRuntime, concurrency: number): Promise<{ agent: number; raw: number }> {
  const times = { agent: [] as number[], raw: [] as number[] };
  const burstPlaces = { logs: join(work, "raw-bursts"), cgroup: RAW_CGROUP };
  for (let round = 0; round < BURST_ROUNDS; round++) {
    const names = Array.from({ length: BURST }, (_, i) => `raw-again-${i}`);
    times.raw.push(await rawBurst(runtime, names, { places: burstPlaces, concurrency }));
    await removeRaw(runtime);
    await clock.sleep(SETTLE_MS);
    const { agent } = await BenchAgent.start({ pods, state });
    await clock.sleep(SETTLE_MS);
    times.agent.push(await measureBurst(runtime));
    for (let i = 0; i < BURST; i++) unlinkSync(join(pods, `burst${i}x.json`));
    await emptied(runtime);
    await clock.sleep(SETTLE_MS);
    await agent.stop();
  }
  say(`bursts of ${BURST}, agent: ${times.agent.join(", ")} ms; raw: ${times.raw.map(Math.round).join(", ")} ms`);
  return { agent: median(times.agent), raw: median(times.raw) };
}

async function measureIdle(agent: BenchAgent): Promise<{ cpuPercent: number; residentMb: number }> {
  await clock.sleep(15_000);
  const before = agent.cpuSeconds();
  await clock.sleep(IDLE_SECONDS * 1000);
  return { cpuPercent: ((agent.cpuSeconds() - before) / IDLE_SECONDS) * 100, residentMb: agent.residentMb() };
}

async function commandTimes(): Promise<{ version: number; node: number }> {
  const versions: number[] = [];
  const nodes: number[] = [];
  for (let i = 0; i < 15; i++) {
    versions.push(await timeCommand(join(import.meta.dirname, "../bin/kubelet"), ["--version"]));
    nodes.push(await timeCommand(process.execPath, ["-e", "0"]));
  }
  return { version: median(versions), node: median(nodes) };
}

try {
  const { version, node } = await commandTimes();
  say("starting a private containerd");
  const cold = await BenchAgent.start({ pods, state });
  await cold.agent.stop();
  const runtime = new CriRuntime(
    { clock, log: silent },
    { endpoint: `unix://${state}/run/containerd.sock`, requestTimeoutMs: fixed(120_000) },
  );
  say("measuring bare CRI calls");
  const raw = await measureRaw(runtime);
  say(`measuring bursts of ${BURST}`);
  const bursts = await measureBursts(runtime, raw.concurrency);
  const { agent, tookMs } = await BenchAgent.start({ pods, state });
  say("measuring the agent: one file after the other");
  const files = await measureFiles(runtime);
  say("measuring the agent: first crashes");
  const crashes = await measureCrashes(runtime);
  await measureBurst(runtime);
  say(`measuring the agent: idle with ${BURST} pods`);
  const idle = await measureIdle(agent);
  for (let i = 0; i < BURST; i++) unlinkSync(join(pods, `burst${i}x.json`));
  await emptied(runtime);
  const lifecycle = await measureLifecycle(runtime, { pods, state, work, say });
  say("measuring the agent: pulls");
  const pulls = await measureImages(runtime, { pods, state, work, say, concurrency: raw.concurrency });
  await agent.stop();
  say("measuring log rotation");
  const rotation = await measureRotation(runtime, { pods, state, work, say });
  say("measuring probes");
  const probes = await measureProbes();
  say("measuring the configuration");
  const changes = await measureLiveChanges(work, state);
  const { validate, node: beside } = await measureValidate(work);
  say("measuring volumes");
  const volumes = JSON.parse(
    execFileSync(process.execPath, ["--import", "tsx", join(import.meta.dirname, "volumes-run.ts"), work], {
      encoding: "utf8",
    }),
  ) as readonly Row[]; // reason: its own words
  say("measuring log streaming");
  const logs = await measureLogs(work);
  say("measuring image garbage collection");
  const collected = await measureImageGc();
  say("measuring admission by topology");
  const topology = [...(await measureTopology()), ...(await measureDevices())];
  say("measuring the page");
  const page = await measurePage();
  show([
    ...volumes,
    ...collected,
    ...topology,
    ...page,
    ...logs,
    {
      what: "file written → running, median",
      measured: files,
      raw: raw.running,
      limit: raw.running * 1.25 + 30,
      unit: "ms",
    },
    { what: "exit → running again, median", measured: crashes, raw: raw.restart, limit: raw.restart + 60, unit: "ms" },
    {
      what: `burst of ${BURST}, all running, median of ${BURST_ROUNDS}`,
      measured: bursts.agent,
      raw: bursts.raw,
      limit: bursts.raw * 1.2,
      unit: "ms",
    },
    ...lifecycle,
    ...pulls,
    ...rotation,
    { what: "500 HTTP probes at 1 s, of a core", measured: probes, limit: 10, unit: "%" },
    { what: `idle with ${BURST} pods, of a core`, measured: idle.cpuPercent, limit: 1, unit: "%" },
    { what: `idle with ${BURST} pods, resident`, measured: idle.residentMb, limit: 90, unit: "MB" },
    { what: "up, containerd running", measured: tookMs, limit: 3000, unit: "ms" },
    { what: "up, containerd to start, images to make", measured: cold.tookMs, limit: 3000, unit: "ms" },
    { what: "live change in force, slowest of 15", measured: Math.max(...changes), limit: 500, unit: "ms" },
    {
      what: "config validate",
      measured: median(validate),
      raw: median(beside),
      limit: median(beside) * 2.5,
      unit: "ms",
    },
    { what: "--version", measured: version, raw: node, limit: node * 1.5, unit: "ms" },
  ]);
  runtime.close();
} finally {
  await tearDown(state);
  removeRawCgroup();
  rmSync(work, { recursive: true, force: true });
}
