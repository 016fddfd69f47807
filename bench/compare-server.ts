// The servers of both agents side by side: `/pods`, statistics, logs, exec. Called by compare.ts when many pods run.
import { spawn } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { Agent, get } from "node:https";
import { join } from "node:path";
import type { Pod } from "../src/model/generated/types.ts";
import { MainPort, type WebSocketChannels } from "../test/integration/support/main-port.ts";
import { until } from "../test/integration/support/until.ts";
import type { ComparedAgent } from "./compare-agent.ts";

/** Sampling for those who read container metrics, beside the agent's own idling; three rounds of ten seconds. */
const SAMPLED = "idle CPU after scrapes (%)";
const SAMPLED_MS = 30_000;

/** At most so much of the Go kubelet's value; the times of logs are for a fixed size, so less is faster. */
export const SERVER_GOALS: Readonly<Record<string, number>> = {
  "/pods (ms)": 1.0,
  "/metrics/cadvisor (ms)": 0.7,
  "/metrics/cadvisor, CPU (ms)": 0.5,
  "/stats/summary (ms)": 0.7,
  "/stats/summary, CPU (ms)": 0.5,
  [SAMPLED]: 0.5,
  "log, 100 MB (ms)": 1.0,
  "log, 100 MB followed (ms)": 1.0,
  "exec, round trip (ms)": 0.8,
  "resident, 200 idle execs (MB)": 1.0,
};

const ASKED = 60;
/** Enough for a CPU time that is counted in hundredths of a second. */
const PAGES_ASKED = 40;
const EXECS = 40;
const SESSIONS = 200;
/** Sessions that are begun at a time: more make the runtime stand still. */
const LANES = 8;
const LINE = `2026-01-02T03:04:05.678901234Z stdout F ${"x".repeat(99)}\n`;
const LINES = 1_000_000;
const BYTES = LINES * 100;

/** Counts the bytes of an answer in a process of its own, and tells when all have come. */
const CLIENT = `
  const [url, wanted] = process.argv.slice(1);
  require("node:https").get(url, { rejectUnauthorized: false }, (response) => {
    process.stdout.write("begun\\n");
    const began = performance.now();
    let size = 0;
    response.on("data", (chunk) => {
      size += chunk.length;
      if (size < Number(wanted)) return;
      process.stdout.write(JSON.stringify({ size, ms: performance.now() - began, at: Date.now() }) + "\\n");
      process.exit(0);
    });
  });
`;

export interface ServerSite {
  readonly agent: ComparedAgent;
  /** A pod that runs, with a shell in its container `main`. */
  readonly pod: Pod;
  /** Where the agent has the logs of pods. */
  readonly logs: string;
  note(what: string, value: number): void;
}

/** Measures one agent's main port. Leaves nothing behind in the pod but its log. */
export async function measureServer({ agent, pod, logs, note }: ServerSite): Promise<void> {
  const { name = "", namespace = "", uid = "" } = pod.metadata;
  const port = new MainPort(agent.port, undefined);
  const file = join(logs, `${namespace}_${name}_${uid}`, "main", "0.log");
  const log = `https://127.0.0.1:${agent.port}/containerLogs/${namespace}/${name}/main`;
  append(file);
  note("log, 100 MB (ms)", best(await several(3, async () => (await fetchLog(log)).ms)));
  note("log, 100 MB followed (ms)", best(await several(3, () => follow(log, file))));
  const exec = `/exec/${namespace}/${name}/main`;
  const times = await several(EXECS, () => execute(port, exec));
  note("exec, round trip (ms)", median(times));
  note("resident, 200 idle execs (MB)", await idleSessions(agent, port, exec));
}

/** The pages of pods and statistics, and what it costs that somebody reads them now and then. */
export async function measurePages({ agent, note }: Pick<ServerSite, "agent" | "note">): Promise<void> {
  note("/pods (ms)", (await askPage(agent, "/pods", ASKED)).ms);
  for (const path of ["/metrics/cadvisor", "/stats/summary"]) {
    const { ms, cpuMs } = await askPage(agent, path, PAGES_ASKED);
    note(`${path} (ms)`, ms);
    note(`${path}, CPU (ms)`, cpuMs);
  }
  const before = agent.usage().cpuMs;
  await new Promise((resolve) => setTimeout(resolve, SAMPLED_MS));
  note(SAMPLED, ((agent.usage().cpuMs - before) / SAMPLED_MS) * 100);
}

/** The median of the times that a page takes, and the mean of the CPU time that the agent needs for it. */
async function askPage(
  asked: Pick<ComparedAgent, "port" | "usage">,
  path: string,
  count: number,
): Promise<{ ms: number; cpuMs: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = (): Promise<number> =>
    new Promise((resolve, reject) => {
      const began = performance.now();
      get(`https://127.0.0.1:${asked.port}${path}`, { agent, rejectUnauthorized: false }, (response) => {
        response.resume().on("end", () => resolve(performance.now() - began));
      }).on("error", reject);
    });
  // What the first one needs to begin with is not its own cost.
  await several(3, ask);
  const before = asked.usage().cpuMs;
  const times = await several(count, ask);
  const cpuMs = (asked.usage().cpuMs - before) / count;
  agent.destroy();
  return { ms: median(times), cpuMs };
}

/** Puts lines into a container's log as its runtime would. */
function append(file: string): void {
  const handle = openSync(file, "a");
  const block = LINE.repeat(1000);
  for (let count = 0; count < LINES; count += 1000) writeSync(handle, block);
  closeSync(handle);
}

interface Fetched {
  readonly ms: number;
  readonly at: number;
}

async function fetchLog(url: string, begun: () => void = () => undefined): Promise<Fetched> {
  const child = spawn(process.execPath, ["-e", CLIENT, url, String(BYTES)], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  return new Promise((resolve, reject) => {
    child.on("error", reject).on("close", () => reject(new Error(`the log ended early: ${text}`)));
    child.stdout.on("data", (chunk: Buffer) => {
      const isFirst = text === "";
      text += chunk.toString();
      if (isFirst) begun();
      const line = text.split("\n")[1] ?? "";
      if (line.endsWith("}")) resolve(JSON.parse(line) as Fetched);
    });
  });
}

/** From the first line that is written to the last that is read. */
async function follow(url: string, file: string): Promise<number> {
  let began = 0;
  const { at } = await fetchLog(`${url}?follow=true&tailLines=0`, () => {
    // The follower has seen the end of the log by then.
    setTimeout(() => {
      began = Date.now();
      append(file);
    }, 500);
  });
  return at - began;
}

async function execute(port: MainPort, path: string): Promise<number> {
  const began = performance.now();
  const socket = await port.webSocket(`${path}?command=true&output=1&error=1`);
  await socket.closed;
  if (!socket.text(3).includes("Success")) throw new Error(`exec failed: ${socket.text(3)}`);
  return performance.now() - began;
}

/** Resident megabytes while many commands wait for input that does not come. */
async function idleSessions(agent: ComparedAgent, port: MainPort, path: string): Promise<number> {
  const sockets: WebSocketChannels[] = [];
  const query = `command=sh&command=-c&command=${encodeURIComponent("echo on; read x")}&input=1&output=1&error=1`;
  const begin = async (): Promise<void> => {
    const socket = await port.webSocket(`${path}?${query}`);
    sockets.push(socket);
    await until("the command runs", () => socket.text(1) === "on\n", { limitMs: 60_000 });
  };
  await Promise.all(Array.from({ length: LANES }, () => several(SESSIONS / LANES, begin)));
  await new Promise((resolve) => setTimeout(resolve, 12_000));
  const { residentBytes } = agent.usage();
  for (const socket of sockets) socket.send(0, "\n");
  await Promise.all(
    sockets.map((socket) => Promise.race([socket.closed, new Promise((done) => setTimeout(done, 10_000))])),
  );
  for (const socket of sockets) socket.destroy();
  return residentBytes / 1e6;
}

async function several<T>(count: number, work: () => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  for (let at = 0; at < count; at++) results.push(await work());
  return results;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The machine is shared: the least disturbed of a few runs. */
function best(values: readonly number[]): number {
  return Math.min(...values);
}
