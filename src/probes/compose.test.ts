import assert from "node:assert/strict";
import { test } from "node:test";
import { observed, pod, sandbox, seen } from "../../test/support/pods.ts";
import { loadConfiguration } from "../config/load.ts";
import { readInputs } from "../config/read.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { composeProbes } from "./compose.ts";

const { signal } = new AbortController();

/** When a container with this readiness probe is asked in its first 25 s, in milliseconds, under a command line. */
async function askedAt(argv: readonly string[]): Promise<number[]> {
  const none = { read: () => Promise.reject(new Error("none")), stat: async () => undefined, list: async () => [] };
  const inputs = await readInputs(
    argv,
    { files: none, parse: async () => ({ documents: [], warnings: [] }) },
    { signal },
  );
  const { values: options, problems } = loadConfiguration(inputs);
  assert.deepEqual(problems, []);
  const clock = new FakeClock();
  const stop = manyListeners();
  const asked: number[] = [];
  const began = clock.now().mono;
  const answer = (): Promise<{ status: number; location: undefined; body: string }> => {
    asked.push(clock.now().mono - began);
    return Promise.resolve({ status: 503, location: undefined, body: "" });
  };
  const scheduler = composeProbes(
    {
      clock,
      log: silent,
      files: { load: () => "", save: () => Promise.resolve() },
      runtime: { execSync: () => Promise.reject(new Error("no commands")) },
      net: { http: answer, tcp: () => Promise.resolve(), grpc: () => Promise.reject(new Error("no grpc")) },
      hooks: { ran: () => undefined, changed: () => undefined, forgotten: () => undefined },
    },
    { options, machine: { addresses: ["192.0.2.1"] } },
    stop.signal,
  );
  const readinessProbe = { httpGet: { port: 80, path: "/" }, periodSeconds: 10 };
  const web = pod("web").container("app", { readinessProbe }).build();
  const app = seen({ name: "app", image: "app:1" }, { startedAt: clock.now().wall });
  scheduler.follow(web, observed(web, [sandbox()], [app]));
  await clock.advance(25_000);
  stop.abort();
  return asked;
}

test("a new container is probed in extra rounds, and with --upstream-probe-timing once a period", async () => {
  const extra = await askedAt([]);
  assert.ok(extra.length > 10, `asked at ${extra.join(", ")}`);
  const upstream = await askedAt(["--upstream-probe-timing"]);
  assert.ok(upstream.length === 2 || upstream.length === 3, `asked at ${upstream.join(", ")}`);
  for (const [index, at] of upstream.entries()) {
    if (index > 0) assert.equal(Math.round(at - (upstream[index - 1] ?? 0)), 10_000);
  }
});
