import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { hostLogFiles } from "../src/adapters/host/log-files.ts";
import { listenHttp } from "../src/adapters/net/http-server.ts";
import { selfSignedPair } from "../src/adapters/net/self-signed.ts";
import { openSslCiphers } from "../src/adapters/net/tls-names.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { fixed } from "../src/lib/live.ts";
import { silent } from "../src/lib/log.ts";
import { readLog } from "../src/logs/index.ts";
import { median, type Row } from "./table.ts";

/** Lines of 100 bytes of text, with the newline. */
const LINE = `2026-01-02T03:04:05.678901234Z stdout F ${"x".repeat(99)}\n`;
const LINES = 3_000_000;
const TURNS = 3;
/** 200 MB of text a second. */
const LIMIT_MS = 500;

const CLIENT = `
  const call = require(process.argv[1].startsWith("https") ? "node:https" : "node:http");
  let size = 0;
  const began = performance.now();
  call.get(process.argv[1], { rejectUnauthorized: false }, (response) => {
    response.on("data", (chunk) => { size += chunk.length; });
    response.on("end", () => process.stdout.write(JSON.stringify({ size, ms: performance.now() - began })));
  });
`;

/** Milliseconds for 100 MB of a container's log: the reader alone, and over HTTP and HTTPS to another process. */
export async function measureLogs(directory: string): Promise<readonly Row[]> {
  const path = join(directory, "bench.log");
  await writeLog(path);
  const clock = new SystemClock();
  const { signal } = new AbortController();
  const read = () => readLog({ files: hostLogFiles, clock }, { path }, { signal });
  const rows = [row("log: 100 MB read", await turns(() => readAll(read())))];
  const pair = await selfSignedPair(directory, "localhost", clock.now().wall);
  const { ciphers } = openSslCiphers([]);
  const tls = { material: fixed({ ...pair, clientAuthorities: "" }), minVersion: "TLSv1.2" as const, ciphers };
  for (const scheme of ["http", "https"] as const) {
    const listener = await listenHttp(
      { log: silent },
      {
        address: { host: "127.0.0.1", port: 0 },
        routes: [{ methods: ["GET"], path: "/log", handle: () => ({ status: 200, body: read() }) }],
        ...(scheme === "https" && { tls }),
      },
    );
    const url = `${scheme}://127.0.0.1:${listener.port}/log`;
    rows.push(row(`log: 100 MB over ${scheme}`, await turns(() => fetchIn(url))));
    await listener.close();
  }
  return rows;
}

interface Read {
  readonly size: number;
  readonly ms: number;
}

/** Milliseconds for 100 MB in each of a few turns. */
async function turns(read: () => Promise<Read>): Promise<readonly number[]> {
  const times: number[] = [];
  for (let turn = 0; turn < TURNS; turn++) {
    const { size, ms } = await read();
    times.push((ms * 100e6) / size);
  }
  return times;
}

function row(what: string, times: readonly number[]): Row {
  return { what: `${what}, median of ${times.length}`, measured: median(times), limit: LIMIT_MS, unit: "ms" };
}

async function readAll(chunks: AsyncIterable<Buffer>): Promise<Read> {
  const began = performance.now();
  let size = 0;
  for await (const chunk of chunks) size += chunk.length;
  return { size, ms: performance.now() - began };
}

async function writeLog(path: string): Promise<void> {
  const out = createWriteStream(path);
  const block = LINE.repeat(1000);
  for (let count = 0; count < LINES; count += 1000) if (!out.write(block)) await once(out, "drain");
  out.end();
  await once(out, "close");
}

async function fetchIn(url: string): Promise<Read> {
  const child = spawn(process.execPath, ["-e", CLIENT, url], { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(child, "close");
  return JSON.parse(text) as Read;
}
