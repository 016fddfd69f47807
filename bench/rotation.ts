import { mkdirSync, readdirSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import type { CriRuntime } from "../src/adapters/cri/cri-runtime.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { rotatedLogs } from "../src/logs/rotation/plan-rotation.ts";
import { BenchAgent } from "./agent.ts";
import type { Row } from "./table.ts";

const WRITERS = 30;
/** Lines of about 200 bytes, in bursts of a quarter of a second: 1 MB a second. */
const LINE_BYTES = 200;
const FILLING = "x".repeat(LINE_BYTES - 8);
const BURST_LINES = 1250;
const BURST_SECONDS = 0.25;
const SECONDS = 32;
const LINES = (SECONDS / BURST_SECONDS) * BURST_LINES;
/** Per cent of a core. */
const LIMIT = 3;
const SETTLE_MS = 5000;
/** How long the same agent is measured before anything is written. */
const IDLE_MS = 20_000;
const clock = new SystemClock();
const { signal } = new AbortController();

interface Places {
  readonly pods: string;
  readonly state: string;
  readonly work: string;
  say(text: string): void;
}

interface Turn {
  /** Per cent of a core: of the whole process, and of its main thread. */
  readonly process: number;
  readonly mainThread: number;
  /** Of the whole process with the same pods before they write. */
  readonly idle: number;
  readonly megabytesPerSecond: number;
  /** Per cent of a core that gzip alone takes for the logs that were compressed meanwhile. */
  readonly gzipAlone: number;
}

/**
 * 30 containers that write 1 MB a second each, with the default size of 10 MiB. With two files a log nothing is ever
 * compressed: what the agent takes then, beyond what it takes with the same pods before they write, is the rotation. With
 * the default of five files every line is still there at the end, and the rest is gzip.
 */
export async function measureRotation(runtime: CriRuntime, places: Places): Promise<readonly Row[]> {
  const rotation = await turn(runtime, places, { name: "rot", maxFiles: 2 });
  const all = await turn(runtime, places, { name: "gzip", maxFiles: 5, check: assertEveryLine });
  const told = [rotation, all].map((one) => JSON.stringify(one)).join("; ");
  places.say(`rotation without and with compression: ${told}; load ${readFileSync("/proc/loadavg", "utf8").trim()}`);
  const what = `rotation of ${WRITERS} logs at 1 MB/s`;
  const bare = all.gzipAlone;
  return [
    { what: `${what}, of a core`, measured: rotation.process - rotation.idle, limit: LIMIT, unit: "%" },
    { what: `${what} and gzip, main thread, of a core`, measured: all.mainThread, limit: LIMIT, unit: "%" },
    {
      what: `${what} and gzip, beside gzip alone, of a core`,
      measured: all.process,
      raw: bare,
      limit: bare * 1.1 + LIMIT,
      unit: "%",
    },
  ];
}

async function turn(
  runtime: CriRuntime,
  { pods, state, work }: Places,
  { name, maxFiles, check }: { name: string; maxFiles: number; check?: (directory: string) => void },
): Promise<Turn> {
  const shared = join(work, `shared-${name}`);
  mkdirSync(shared);
  const { agent } = await BenchAgent.start({ pods, state }, ["--container-log-max-files", String(maxFiles)]);
  const files = Array.from({ length: WRITERS }, (_, index) => `${name}${index}.json`);
  try {
    for (const file of files) writePod(file, { pods, work, shared });
    const isRunning = async (): Promise<boolean> =>
      (await runtime.listContainers({}, { signal })).filter((one) => one.state === "running").length === WRITERS;
    while (!(await isRunning())) await clock.sleep(200);
    // The start is over, and its garbage collected.
    await clock.sleep(SETTLE_MS);
    const idling = agent.cpuSeconds();
    await clock.sleep(IDLE_MS);
    const idle = ((agent.cpuSeconds() - idling) / (IDLE_MS / 1000)) * 100;
    const before = { process: agent.cpuSeconds(), main: agent.mainThreadSeconds(), at: performance.now() };
    writeFileSync(join(shared, "go"), "");
    while (readdirSync(shared).length < WRITERS + 1) await clock.sleep(200);
    const seconds = (performance.now() - before.at) / 1000;
    const directories = readdirSync(join(state, "log", "pods")).filter((one) => one.startsWith(`default_${name}`));
    if (directories.length !== WRITERS) throw new Error(`logs of ${directories.length} pods`);
    const compressed = directories.flatMap((one) => compressedLogs(join(state, "log", "pods", one, "app")));
    const result = {
      idle,
      process: ((agent.cpuSeconds() - before.process) / seconds) * 100,
      mainThread: ((agent.mainThreadSeconds() - before.main) / seconds) * 100,
      megabytesPerSecond: (WRITERS * LINES * LINE_BYTES) / 1e6 / seconds,
      gzipAlone: (gzipSeconds(compressed) / seconds) * 100,
    };
    for (const one of directories) check?.(join(state, "log", "pods", one, "app"));
    return result;
  } finally {
    for (const file of files) unlinkSync(join(pods, file));
    while ((await runtime.listSandboxes({}, { signal })).length > 0) await clock.sleep(100);
    await agent.stop();
  }
}

/** A pod that waits for all others, writes its lines, and says that it has. */
function writePod(file: string, { pods, work, shared }: { pods: string; work: string; shared: string }): void {
  const name = file.replace(".json", "");
  const script = [
    `SEP=' ${FILLING}\n'`,
    "until [ -e /shared/go ]; do sleep 0.1; done",
    `i=0; while [ $i -lt ${LINES} ]; do seq -s "$SEP" $((i+1)) $((i+${BURST_LINES})); i=$((i+${BURST_LINES})); sleep ${BURST_SECONDS}; done`,
    `touch /shared/${name}; exec sleep 100000`,
  ].join("\n");
  const container = {
    name: "app",
    image: "kubelet.local/demo:1",
    command: ["sh", "-c", script],
    volumeMounts: [{ name: "shared", mountPath: "/shared" }],
  };
  const volumes = [{ name: "shared", hostPath: { path: shared } }];
  const spec = { terminationGracePeriodSeconds: 1, containers: [container], volumes };
  writeFileSync(join(work, file), JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name }, spec }));
  renameSync(join(work, file), join(pods, file));
}

/** A file of a log, which may have been compressed since it was listed. */
function readLog(path: string): Buffer {
  if (path.endsWith(".gz")) return gunzipSync(readFileSync(path));
  try {
    return readFileSync(path);
  } catch {
    return readLog(`${path}.gz`);
  }
}

/** Every line from the first to the last is in the files of the log, once and in order. */
function assertEveryLine(directory: string): void {
  const names = readdirSync(directory);
  const order = [...rotatedLogs("0.log", names).map(({ name }) => name), "0.log"];
  if (order.length < 3) throw new Error(`${directory} was not rotated: ${names.join(", ")}`);
  let expected = 1;
  let line = "";
  for (const name of order) {
    const text = readLog(join(directory, name)).toString("latin1");
    // A line that is being written when its file is rotated has a part in each.
    for (const [, tag, part = ""] of text.matchAll(/^\S+ stdout ([FP]) (.*)$/gm)) {
      line += part;
      if (tag === "P") continue;
      const [number, filling] = line.split(" ");
      const isWhole = filling === FILLING || (filling === undefined && Number(number) % BURST_LINES === 0);
      if (Number(number) !== expected || !isWhole) {
        throw new Error(`${directory}/${name}: ${line.slice(0, 40)} instead of line ${expected}`);
      }
      expected++;
      line = "";
    }
  }
  if (expected !== LINES + 1) throw new Error(`${directory}: ${expected - 1} of ${LINES} lines`);
}

function compressedLogs(directory: string): readonly string[] {
  const names = readdirSync(directory).filter((name) => name.endsWith(".gz"));
  return names.map((name) => join(directory, name));
}

/** Seconds of CPU that the same compression of the same logs takes, in memory. */
function gzipSeconds(paths: readonly string[]): number {
  let seconds = 0;
  for (const path of paths) {
    const text = gunzipSync(readFileSync(path));
    const before = process.cpuUsage();
    gzipSync(text, { level: 3, chunkSize: 256 * 1024 });
    const { user, system } = process.cpuUsage(before);
    seconds += (user + system) / 1e6;
  }
  return seconds;
}
