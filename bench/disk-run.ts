// Only what `bench/run.ts` measures of images and logs: pulls, log rotation, image garbage collection (root).
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CriRuntime } from "../src/adapters/cri/cri-runtime.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { fixed } from "../src/lib/live.ts";
import { silent } from "../src/lib/log.ts";
import { BenchAgent, tearDown } from "./agent.ts";
import { measureImageGc } from "./gc.ts";
import { measureImages } from "./images.ts";
import { removeRawCgroup } from "./raw.ts";
import { measureRotation } from "./rotation.ts";
import { show } from "./table.ts";

const work = mkdtempSync("/var/tmp/kubelet-bench-");
const [state, pods] = [join(work, "state"), join(work, "pods")];
mkdirSync(pods);
const only = process.argv[2] ?? "";
const places = { pods, state, work, say: (text: string) => void process.stderr.write(`${text}\n`), concurrency: 4 };

try {
  const { agent } = await BenchAgent.start({ pods, state });
  const runtime = new CriRuntime(
    { clock: new SystemClock(), log: silent },
    { endpoint: `unix://${state}/run/containerd.sock`, requestTimeoutMs: fixed(120_000) },
  );
  const pulls = "pulls".includes(only) ? await measureImages(runtime, places) : [];
  await agent.stop();
  const rotation = "rotation".includes(only) ? await measureRotation(runtime, places) : [];
  const collected = "gc".includes(only) ? await measureImageGc() : [];
  show([...pulls, ...rotation, ...collected]);
  runtime.close();
} finally {
  await tearDown(state);
  removeRawCgroup();
  rmSync(work, { recursive: true, force: true });
}
