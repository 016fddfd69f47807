import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { freePort } from "../../test/support/free-port.ts";
import { SystemClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import type { StatsPages } from "./api-deps.ts";
import { cadvisorServer } from "./servers.ts";

const stats: StatsPages = {
  summary: () => Promise.reject(new Error("not asked for")),
  cadvisor: async () => ["container_last_seen 1\n"],
  api: async () => ({ json: { names: [] } }),
};

function ask(port: number, path: string, host: string | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = host === undefined ? {} : { Host: host };
    const call = request({ host: "127.0.0.1", port, path, headers, setHost: false, agent: false }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    call.on("error", reject).end();
  });
}

test("on loopback the port answers to local names only: a name of a web site could lead here", async () => {
  const port = await freePort();
  const page = { routes: () => [] };
  const server = cadvisorServer({ clock: new SystemClock(), log: silent, stats, page }, { host: "127.0.0.1", port });
  const stop = new AbortController();
  assert.equal(await server?.open(), true);
  const running = server?.run(stop);
  try {
    for (const path of ["/metrics", "/api/v1.3/containers/", "/validate/", "/healthz"]) {
      for (const host of [`127.0.0.1:${port}`, "localhost:9999", "[::1]", "LOCALHOST"]) {
        assert.equal(await ask(port, path, host), 200, `${path} for ${host}`);
      }
      for (const host of ["evil.example:4194", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1:4194"]) {
        assert.equal(await ask(port, path, host), 403, `${path} for ${host}`);
      }
    }
  } finally {
    stop.abort();
    await running;
  }
});
