// 5,000 objects of the local API, listed and watched, for `local-api.ts`. The server runs as it is shipped: bundled, and with
// the flags of bin/kubelet. Its clients are in another process and parse nothing.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { SocketClient } from "../test/support/local-api-server.ts";
import { type ClientOrder, type ClientReport, sharedNow } from "./local-api-clients.ts";
import type { FanOut, ServerOrder, ServerReport } from "./local-api-server.ts";
import { median, type Row } from "./table.ts";

export const OBJECTS = 5000;
export const PODS = "/api/v1/namespaces/default/pods";
const MIB = 1 << 20;
const WATCHERS = 100;
const ROUNDS = 15;
/** Events that count, and those before them: an agent that has run for a minute has compiled what sends them. */
const EVENTS = 100;
const WARM_EVENTS = 50;
const ROOT = join(import.meta.dirname, "..");
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

/** A pod as controllers write them: 4.5 KB when it is stored, with its defaults and the owners of its fields. */
export function pod(name: string): object {
  const container = (word: string): object => ({
    name: word,
    image: `registry.example.com/team/${word}:1.2.3`,
    env: Array.from({ length: 8 }, (_, index) => ({ name: `VARIABLE_${index}`, value: `value ${index} of ${word}` })),
    resources: { requests: { cpu: "100m", memory: "64Mi" } },
  });
  const labels = { app: "bench", "app.kubernetes.io/name": name, tier: "front" };
  return {
    metadata: { name, labels },
    spec: { nodeSelector: { none: "such" }, containers: ["a", "b"].map(container) },
  };
}

/** The server as one file, as the agent is shipped. */
async function bundle(to: string): Promise<void> {
  await build({
    entryPoints: [join(ROOT, "bench/local-api-server.ts")],
    outfile: to,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: ["koffi"],
    minifySyntax: true,
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    logLevel: "error",
  });
}

/** What the agent gives to Node. */
function launch(): { readonly execArgv: string[]; readonly env: NodeJS.ProcessEnv } {
  const execArgv = readFileSync(join(ROOT, "bin/kubelet"), "utf8").match(/--max-[a-z-]+=\d+/g) ?? [];
  return { execArgv, env: { ...process.env, UV_THREADPOOL_SIZE: "16" } };
}

/** A process, and what it sends. */
class Child<Report, Order extends object> {
  private readonly process: ChildProcess;
  private readonly reports: Report[] = [];
  private wake: () => void = () => undefined;

  constructor(program: string, args: readonly string[], options: object) {
    this.process = fork(program, args, { stdio: ["ignore", "ignore", "inherit", "ipc"], ...options });
    this.process.on("message", (report: Report) => {
      this.reports.push(report);
      this.wake();
    });
  }

  send(order: Order): void {
    this.process.send(order);
  }

  /** The next report. */
  async report(): Promise<Report> {
    for (;;) {
      const report = this.reports.shift();
      if (report !== undefined) return report;
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  /** Milliseconds that its main thread has run. */
  get cpu(): number {
    const { pid } = this.process;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  }

  async end(): Promise<void> {
    if (this.process.exitCode !== null) return;
    const ended = once(this.process, "exit");
    // The channel would keep it running.
    this.process.disconnect();
    this.process.kill();
    await ended;
  }
}

interface Scene {
  readonly socket: string;
  readonly api: SocketClient;
  readonly server: Child<ServerReport, ServerOrder>;
  readonly clients: Child<ClientReport, ClientOrder>;
}

/** Starts the server and the process of its clients, and ends them afterwards. */
async function withServer<T>(use: (scene: Scene) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "k-"));
  const socket = join(dir, "s");
  // In the checkout, where it finds its packages.
  const program = join(ROOT, "dist/bench-local-api.mjs");
  await bundle(program);
  const server = new Child<ServerReport, ServerOrder>(program, [join(dir, "objects"), socket], launch());
  const clients = new Child<ClientReport, ClientOrder>(join(ROOT, "bench/local-api-clients.ts"), [], {
    execArgv: ["--import", "tsx"],
  });
  const api = new SocketClient(socket);
  try {
    const isReady = (): Promise<boolean> =>
      api.ask("GET", "/readyz").then(
        ({ status }) => status === 200,
        () => false,
      );
    while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 50));
    return await use({ socket, api, server, clients });
  } finally {
    api.close();
    await Promise.all([server.end(), clients.end()]);
    rmSync(dir, { recursive: true, force: true });
    rmSync(program, { force: true });
  }
}

async function create(api: SocketClient, name: string): Promise<void> {
  const { status, text } = await api.ask("POST", PODS, pod(name));
  if (status !== 201) throw new Error(text);
}

/** Creates the objects, 10 at a time. Returns milliseconds for each. */
async function fill(api: SocketClient): Promise<number> {
  const began = sharedNow();
  const lanes = Array.from({ length: 10 }, async (_, lane) => {
    for (let index = lane; index < OBJECTS; index += 10) await create(api, `pod-${index}`);
  });
  await Promise.all(lanes);
  return (sharedNow() - began) / OBJECTS;
}

interface Listed {
  readonly took: number;
  /** Of the server. */
  readonly cpu: number;
  /** Of the server for the first one. */
  readonly firstCpu: number;
  readonly bytes: number;
}

/** Lists as a client that asks for this form, in milliseconds: the median of the time, the mean of the CPU time. */
async function list({ socket, server, clients }: Scene, path: string, accept: string): Promise<Listed> {
  const times: number[] = [];
  let bytes = 0;
  const before = server.cpu;
  let afterFirst = before;
  for (let round = 0; round <= ROUNDS; round++) {
    if (round === 1) afterFirst = server.cpu;
    clients.send({ list: path, socket, accept });
    const report = await clients.report();
    if (!("took" in report)) throw new Error("a list was not answered");
    bytes = report.bytes;
    times.push(report.took);
  }
  const cpu = (server.cpu - afterFirst) / ROUNDS;
  return { took: median(times.slice(1)), cpu, firstCpu: afterFirst - before, bytes };
}

/** The most CPU time that a turn of the server's event loop takes while `work` is done: all others wait for it. */
async function longestTurn({ server }: Scene, work: () => Promise<unknown>): Promise<number> {
  server.send({ turns: "begin" });
  await work();
  server.send({ turns: "end" });
  const report = await server.report();
  if (!("longestTurn" in report)) throw new Error("turns were not measured");
  return report.longestTurn;
}

interface Watched {
  /** Of each event, to each watcher, from before the request of the write. */
  readonly delays: readonly (readonly number[])[];
  readonly fanOuts: readonly FanOut[];
  readonly written: readonly number[];
}

async function watch({ socket, api, server, clients }: Scene): Promise<Watched> {
  const { text } = await api.ask("GET", `${PODS}?limit=1`);
  const { resourceVersion } = (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata;
  clients.send({ watch: `${PODS}?watch=1&resourceVersion=${resourceVersion}`, socket, count: WATCHERS });
  await clients.report();
  server.send({ watchers: WATCHERS });
  const delays: number[][] = [];
  const fanOuts: FanOut[] = [];
  const written: number[] = [];
  for (let round = 0; round < WARM_EVENTS + EVENTS; round++) {
    const at = sharedNow();
    await create(api, `watched-${round}`);
    const took = sharedNow() - at;
    const [report, fanOut] = await Promise.all([clients.report(), server.report()]);
    if (!("arrivals" in report) || !("wall" in fanOut)) throw new Error("an event did not arrive");
    if (round < WARM_EVENTS) continue;
    delays.push(report.arrivals.map((arrived) => arrived - at));
    fanOuts.push(fanOut);
    written.push(took);
  }
  return { delays, fanOuts, written };
}

/** Measures lists, writes and watches. */
export function measureObjects(): Promise<Row[]> {
  return withServer(async (scene) => {
    const { api } = scene;
    for (let index = 0; index < 200; index++) await create(api, `warm-${index}`);
    await api.ask("DELETE", PODS);
    const created = await fill(api);
    const plain = await list(scene, PODS, "application/json");
    const selected = await list(scene, `${PODS}?labelSelector=app%3Dbench`, "application/json");
    const table = await list(scene, PODS, TABLE);
    const turn = await longestTurn(scene, async () => {
      await list(scene, PODS, "application/json");
      await list(scene, `${PODS}?labelSelector=tier%3Dfront`, "application/json");
      await list(scene, PODS, TABLE);
      await list(scene, `${PODS}?limit=200`, "application/yaml");
    });
    const { delays, fanOuts, written } = await watch(scene);
    const ms = (what: string, measured: number, limit: number): Row => ({ what, measured, limit, unit: "ms" });
    const size = `${OBJECTS} pods (${(plain.bytes / MIB).toFixed(0)} MiB)`;
    return [
      ms(`list of ${size} on the socket, median`, plain.took, 100),
      ms("CPU time of the server for it", plain.cpu, 100),
      ms("the same by label selector, median", selected.took, 100),
      ms("the same by label selector, the first time, CPU", selected.firstCpu, 500),
      ms("the same as a table, CPU", table.cpu, 500),
      ms("longest turn of the event loop during lists, YAML too, CPU", turn, 100),
      ms("create, 10 at a time, durable, each", created, 5),
      ms(`write to watcher, ${WATCHERS} watchers, median`, median(delays.flat()), 5),
      ms(`write to the last of ${WATCHERS} watchers, median`, median(delays.map((all) => Math.max(...all))), 5),
      ms("the same, slowest write", Math.max(...delays.flat()), 50),
      ms("of it durable to the last write to a connection, median", median(fanOuts.map(({ wall }) => wall)), 5),
      ms("CPU time of that, median", median(fanOuts.map(({ cpu }) => cpu)), 5),
      ms(`answer to the write, ${WATCHERS} watchers, median`, median(written), 10),
    ];
  });
}
