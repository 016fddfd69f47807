// Measures the local API: 5,000 objects listed and watched, their memory, a pod from apply to running beside the file
// source, and the resident memory of the whole agent. `node --import tsx bench/local-api.ts [memory|objects|agent]`, as root, on
// a machine that does nothing else; `agent` needs a build.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { bareRequest } from "../src/adapters/net/http-route.ts";
import { SystemClock } from "../src/lib/clock.ts";
import { manifest } from "../test/integration/support/manifests.ts";
import { Site } from "../test/integration/support/site.ts";
import { until } from "../test/integration/support/until.ts";
import { testApiServer } from "../test/support/local-api.ts";
import { SocketClient } from "../test/support/local-api-server.ts";
import { LocalKubectl } from "../test/support/local-kubectl.ts";
import { measureObjects, OBJECTS, PODS, pod } from "./local-api-objects.ts";
import { median, type Row, show } from "./table.ts";

const ROUNDS = 15;
const MIB = 1 << 20;

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
}

/** Heap of the store beyond the texts, after garbage collection: resident memory shows what V8 has not returned yet. */
async function measureMemory(): Promise<Row[]> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void; // reason: the flag has made it
  const server = await testApiServer(new SystemClock());
  const ask = (method: string, body: unknown) => {
    const readBody = async (): Promise<Buffer> => Buffer.from(JSON.stringify(body));
    const user = { name: "bench", groups: ["system:masters"] };
    return server.handle(
      bareRequest(method, PODS, { headers: { "content-type": "application/json" }, readBody }),
      user,
    );
  };
  for (let index = 0; index < 200; index++) await ask("POST", pod(`warm-${index}`));
  const used = (): number => {
    for (let round = 0; round < 4; round++) collect();
    return process.memoryUsage().heapUsed;
  };
  const before = used();
  let bytes = 0;
  for (let index = 0; index < OBJECTS; index++) bytes += String((await ask("POST", pod(`pod-${index}`))).body).length;
  const beyond = (used() - before - bytes) / OBJECTS;
  await server.close();
  return [{ what: "memory an object beyond its JSON", measured: beyond, limit: 1024, unit: "bytes" }];
}

async function started(site: Site, name: string, want: () => unknown): Promise<number> {
  const at = performance.now();
  await want();
  for (;;) {
    const found = await site.find(name);
    if (found?.state === "Running") return performance.now() - at;
    if (performance.now() - at > 60_000) throw new Error(`${name} does not run`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function measureAgent(): Promise<Row[]> {
  const site = new Site();
  const kubectl = new LocalKubectl(site);
  try {
    let agent = await site.up();
    const client = new SocketClient(join(site.state, "apiserver.sock"));
    // "--all" of none is an error.
    await until("the node", async () => (await client.ask("GET", "/api/v1/nodes")).text.includes('"uid"'));
    await kubectl.ok("wait", "--for=condition=Ready", "--timeout=60s", "node", "--all");
    const byFile: number[] = [];
    const byApi: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const named = (word: string) => manifest(`${word}-${round}`, { terminationGracePeriodSeconds: 0 });
      const file = async () => byFile.push(await started(site, `file-${round}`, () => site.write(named("file"))));
      const api = async () =>
        byApi.push(await started(site, `api-${round}`, () => client.ask("POST", PODS, named("api"))));
      // In turn: the second one finds a busier runtime.
      for (const measure of round % 2 === 0 ? [file, api] : [api, file]) await measure();
      site.remove(`file-${round}`);
      await client.ask("DELETE", `${PODS}/api-${round}`, { gracePeriodSeconds: 0 });
      await Promise.all([site.gone(`file-${round}`), site.gone(`api-${round}`)]);
    }
    const service = { metadata: { name: "s" }, spec: { selector: { app: "x" }, ports: [{ port: 80 }] } };
    await client.ask("POST", "/api/v1/namespaces/default/services", service);
    for (let index = 0; index < 10; index++) site.write(manifest(`ten-${index}`));
    for (let index = 0; index < 10; index++) await site.running(`ten-${index}`);
    await new Promise((resolve) => setTimeout(resolve, 30_000));
    const withApi = residentBytes(agent.pid) / MIB;
    await agent.end("SIGTERM");
    agent = await site.up(["--apiserver=false"]);
    for (let index = 0; index < 10; index++) await site.running(`ten-${index}`);
    await new Promise((resolve) => setTimeout(resolve, 30_000));
    const without = residentBytes(agent.pid) / MIB;
    return [
      { what: "pod by file to running, median", measured: median(byFile), limit: 1000, unit: "ms" },
      {
        what: "pod by the API to running, beyond that, median of pairs",
        measured: median(byApi.map((took, round) => took - (byFile[round] ?? Number.NaN))),
        limit: 40,
        unit: "ms",
      },
      {
        what: "the fastest by the API beyond the fastest by a file",
        measured: Math.min(...byApi) - Math.min(...byFile),
        limit: 40,
        unit: "ms",
      },
      { what: "agent with the API, 10 pods and a Service", measured: withApi, limit: 130, unit: "MB" },
      { what: "the same agent without the API", measured: without, limit: 130, unit: "MB" },
    ];
  } finally {
    await kubectl.close();
    await site.close();
  }
}

const parts: Readonly<Record<string, () => Promise<Row[]>>> = {
  memory: measureMemory,
  objects: measureObjects,
  agent: measureAgent,
};
const wanted = process.argv.slice(2);
const rows: Row[] = [];
for (const [name, measure] of Object.entries(parts)) {
  if (wanted.length === 0 || wanted.includes(name)) rows.push(...(await measure()));
}
show(rows);
