import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { apiDeps } from "../../test/support/api-deps.ts";
import { freePort } from "../../test/support/free-port.ts";
import type { KeptListener } from "../adapters/net/kept-listener.ts";
import { SystemClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { Metrics } from "../lib/metrics.ts";
import { ping } from "./health.ts";
import { RequestMetrics } from "./request-metrics.ts";
import { healthServer, readOnlyServer } from "./servers.ts";

const clock = new SystemClock();
const host = "127.0.0.1";

function ask(port: number, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = request({ host, port, path, headers, agent: false }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    call.on("error", reject).end();
  });
}

async function during(server: KeptListener | undefined, body: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  assert.equal(await server?.open(), true);
  const running = server?.run(stop);
  try {
    await body();
  } finally {
    stop.abort();
    await running;
  }
}

function readOnly(port: number): KeptListener | undefined {
  const requests = new RequestMetrics(clock, new Metrics());
  return readOnlyServer({ clock, log: silent, api: apiDeps().deps, requests }, { host, port });
}

test("on loopback the read-only port answers to local names only: a name of a web site could lead here", async () => {
  const port = await freePort();
  await during(readOnly(port), async () => {
    for (const name of [`127.0.0.1:${port}`, "localhost"]) assert.equal(await ask(port, "/pods", { Host: name }), 200);
    for (const name of ["evil.example:10255", "127.0.0.1.evil.example"]) {
      assert.equal(await ask(port, "/pods", { Host: name }), 403);
    }
  });
});

for (const { name, open } of [
  { name: "read-only", open: readOnly },
  { name: "health", open: (port: number) => healthServer({ clock, log: silent, checks: [ping] }, { host, port }) },
]) {
  test(`the ${name} port, which everybody reaches, takes no headers over 128 KB`, async () => {
    const port = await freePort();
    await during(open(port), async () => {
      assert.equal(await ask(port, "/healthz", { "X-Long": "x".repeat(100_000) }), 200);
      assert.equal(await ask(port, "/healthz", { "X-Long": "x".repeat(200_000) }), 431);
    });
  });
}
