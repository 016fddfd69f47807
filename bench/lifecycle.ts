import { renameSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CriRuntime } from "../src/adapters/cri/cri-runtime.ts";
import { UnixClient } from "../src/adapters/net/unix-client.ts";
import { SystemClock } from "../src/lib/clock.ts";
import type { PodChanges } from "../src/localapi/index.ts";
import type { PodEvent, PodSummary } from "../src/model/step.ts";
import { RAW_CGROUP, rawBurst, rawEnd, rawPod, removeRaw } from "./raw.ts";
import { median, type Row } from "./table.ts";

const SINGLES = 20;
const ENDS = 10;
const MANY = 100;
const GRACE = 5;
/** Ends at once when it is asked to. */
const HONOURS = ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done"];
const clock = new SystemClock();

interface Places {
  readonly pods: string;
  readonly state: string;
  readonly work: string;
  say(text: string): void;
}

/** One pod until it is Ready, many at once, and an end, beside a bare CRI client that does the same calls. */
export async function measureLifecycle(runtime: CriRuntime, places: Places): Promise<readonly Row[]> {
  const agent = new UnixClient(join(places.state, "kubelet.sock"));
  const raw = { logs: join(places.work, "raw-lifecycle"), cgroup: RAW_CGROUP, command: HONOURS };
  places.say("measuring the agent: one pod until it is Ready, and its end");
  const rows = await measureSingles(runtime, { agent, places, raw });
  places.say(`measuring the agent: a burst of ${MANY}`);
  return [...rows, ...(await measureMany(runtime, { agent, places, raw }))];
}

interface Site {
  readonly agent: UnixClient;
  readonly places: Places;
  readonly raw: Parameters<typeof rawPod>[2];
}

async function measureSingles(runtime: CriRuntime, { agent, places, raw }: Site): Promise<readonly Row[]> {
  const times = { ready: [] as number[], rawReady: [] as number[], end: [] as number[], rawEnd: [] as number[] };
  for (let i = 0; i < SINGLES; i++) {
    times.rawReady.push((await rawPod(runtime, `raw-one-${i}`, raw)).whole);
    if (i < ENDS) times.rawEnd.push(await rawEnd(runtime, `raw-one-${i}`, GRACE));
    else await removeRaw(runtime);
    const started = hearStart(agent);
    const began = put(places, `one${i}`);
    await started;
    await firstReady(agent);
    times.ready.push(performance.now() - began);
    const asked = performance.now();
    unlinkSync(join(places.pods, `one${i}.json`));
    // Not more often: whoever asks takes time from those who stop.
    while ((await runtime.listSandboxes({}, never)).length > 0) await clock.sleep(10);
    if (i < ENDS) times.end.push(performance.now() - asked);
    await clock.sleep(100);
  }
  const [readyRaw, endRaw] = [median(times.rawReady), median(times.rawEnd)];
  return [
    {
      what: "file written → Ready, median",
      measured: median(times.ready),
      raw: readyRaw,
      limit: readyRaw * 1.12,
      unit: "ms",
    },
    {
      what: "file removed → nothing left, median",
      measured: median(times.end),
      raw: endRaw,
      limit: endRaw * 1.3,
      unit: "ms",
    },
  ];
}

async function measureMany(runtime: CriRuntime, { agent, places, raw }: Site): Promise<readonly Row[]> {
  let rawMs = Number.POSITIVE_INFINITY;
  for (const concurrency of [3, 4, 6]) {
    const names = Array.from({ length: MANY }, (_, i) => `raw-many-${i}`);
    const took = await rawBurst(runtime, names, { places: raw, concurrency });
    places.say(`raw burst of ${MANY} with ${concurrency} at a time: ${Math.round(took)} ms`);
    rawMs = Math.min(rawMs, took);
    await removeRaw(runtime);
    await clock.sleep(2000);
  }
  const began = performance.now();
  for (let i = 0; i < MANY; i++) put(places, `many${i}`);
  const times = (await readyOnes(agent, MANY)).map((at) => at - began);
  const whole = Math.max(...times);
  for (let i = 0; i < MANY; i++) unlinkSync(join(places.pods, `many${i}.json`));
  while ((await runtime.listSandboxes({}, never)).length > 0) await clock.sleep(100);
  return [
    { what: `burst of ${MANY}, all Ready`, measured: whole, raw: rawMs, limit: rawMs * 1.15, unit: "ms" },
    { what: `burst of ${MANY}, median pod Ready`, measured: median(times), limit: whole * 0.6, unit: "ms" },
  ];
}

const never = { signal: new AbortController().signal };

/** Writes a manifest as a careful user does (beside, then renamed); the answer is the moment of the rename. */
function put({ pods, work }: Places, name: string): number {
  const container = { name: "app", image: "kubelet.local/demo:1", command: HONOURS };
  const spec = { terminationGracePeriodSeconds: GRACE, containers: [container] };
  writeFileSync(join(work, "new.json"), JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec }));
  const at = performance.now();
  renameSync(join(work, "new.json"), join(pods, `${name}.json`));
  return at;
}

/** Resolves when the agent tells that a container was started: until then nobody asks it anything. */
async function hearStart(agent: UnixClient): Promise<void> {
  const stop = new AbortController();
  const begun = Date.now();
  for await (const { reason, last } of agent.lines<PodEvent>("/v1/events?watch=true", { signal: stop.signal })) {
    if (reason === "Started" && last >= begun) break;
  }
  stop.abort();
}

const isReady = (pod: PodSummary): boolean => pod.phase === "Running" && pod.readyContainers === pod.totalContainers;

async function firstReady(agent: UnixClient): Promise<void> {
  while (!(await agent.json<readonly PodSummary[]>("/v1/pods", never)).some(isReady)) await clock.sleep(2);
}

/** Waits until so many pods are Ready; the answer is when each was first seen to be. */
async function readyOnes(agent: UnixClient, count: number): Promise<readonly number[]> {
  const seen = new Map<string, number>();
  const stop = new AbortController();
  for await (const { set } of agent.lines<PodChanges>("/v1/watch", { signal: stop.signal })) {
    for (const pod of set) if (isReady(pod) && !seen.has(pod.uid)) seen.set(pod.uid, performance.now());
    if (seen.size >= count) break;
  }
  stop.abort();
  return [...seen.values()];
}
