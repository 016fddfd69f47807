import { spawn } from "node:child_process";
import { probeNet } from "../src/adapters/net/probe-net.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { silent } from "../src/lib/log.ts";
import { Metrics } from "../src/lib/metrics.ts";
import type { Pod } from "../src/model/generated/types.ts";
import type { ObservedPod } from "../src/model/observed.ts";
import { ProbeScheduler, probeHooks } from "../src/probes/index.ts";

// Called by probes.ts with its arguments. A server in another process answers COUNT probes a second (500); the answer is
// the share of one core that this process takes for them.

const count = Number(process.argv[2] ?? 500);
const kind = process.argv[3] === "tcpSocket" ? "tcpSocket" : "httpGet";
const WARM_UP_MS = 5_000;
const MEASURE_MS = 20_000;

const server = spawn(
  process.execPath,
  [
    "-e",
    'const s=require("http").createServer((q,r)=>r.end("ok"));s.listen(0,"127.0.0.1",()=>console.log(s.address().port))',
  ],
  { stdio: ["ignore", "pipe", "inherit"] },
);
process.on("exit", () => server.kill());
const port = await new Promise<number>((resolve, reject) => {
  server.on("error", reject);
  server.stdout.once("data", (chunk: Buffer) => resolve(Number(chunk)));
});

const clock = new SystemClock();
const stop = new AbortController();
let runs = 0;
let ready = 0;
const told = probeHooks({
  journal: { of: () => ({ note: () => undefined, event: (_type, _reason, { message }) => console.log(message) }) },
  metrics: new Metrics(),
  changed: ({ result }) => {
    ready += result === "success" ? 1 : -1;
  },
});
const scheduler = new ProbeScheduler(
  {
    net: probeNet,
    clock,
    log: silent,
    runtime: { execSync: () => Promise.reject(new Error("no commands here")) },
    files: { load: () => "", save: () => Promise.resolve() },
    hooks: {
      ran: (run) => {
        runs++;
        told.ran(run);
      },
      changed: told.changed,
      forgotten: told.forgotten,
    },
  },
  { upstreamTiming: false, hostIp: "127.0.0.1", random: Math.random },
  stop.signal,
);

for (let index = 0; index < count; index++) {
  const metadata = { name: `pod-${index}`, namespace: "bench", uid: `uid-${index}` };
  const readinessProbe = { [kind]: { port }, periodSeconds: 1 };
  const pod: Pod = { metadata, spec: { hostNetwork: true, containers: [{ name: "app", readinessProbe }] } };
  const observed: ObservedPod = {
    ...metadata,
    sandboxes: [],
    readAt: 0,
    containers: [
      {
        id: `container-${index}`,
        sandboxId: "",
        name: "app",
        attempt: 0,
        state: "running",
        hash: "",
        createdAt: 0,
        startedAt: Date.now(),
        finishedAt: 0,
        exitCode: 0,
        reason: "",
        message: "",
        image: "",
        imageRef: "",
        labels: {},
        annotations: {},
        logPath: "",
        mounts: [],
      },
    ],
  };
  // Spread as the starts of pods are.
  setTimeout(() => scheduler.follow(pod, observed), (index * 1000) / count);
}

await clock.sleep(WARM_UP_MS);
const before = { cpu: process.cpuUsage(), mono: clock.now().mono, runs };
await clock.sleep(MEASURE_MS);
const cpu = process.cpuUsage(before.cpu);
const seconds = (clock.now().mono - before.mono) / 1000;
const share = (cpu.user + cpu.system) / 1e6 / seconds;
const made = runs - before.runs;
const each = (cpu.user + cpu.system) / made;
console.log(
  `${count} ${kind} probes at 1 s: ${(100 * share).toFixed(1)} % of a core, ${(made / seconds).toFixed(0)} runs a second, ` +
    `${each.toFixed(0)} µs each (${(cpu.user / made).toFixed(0)} ours, ${(cpu.system / made).toFixed(0)} the kernel's), ${ready} ready, ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MB resident`,
);
stop.abort();
server.kill();
