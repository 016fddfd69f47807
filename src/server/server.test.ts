import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpAnswer, HttpRoute } from "../adapters/net/http-route.ts";
import type { Pod } from "../model/generated/types.ts";
import { type HealthCheck, healthRoutes, ping } from "./health.ts";
import { readOnlyRoutes } from "./read-only.ts";

async function ask(routes: readonly HttpRoute[], target: string): Promise<HttpAnswer | undefined> {
  const url = new URL(target, "http://x");
  const route = routes.find((candidate) => candidate.path === url.pathname);
  const { signal } = new AbortController();
  return route?.handle({ method: "GET", path: url.pathname, params: {}, query: url.searchParams, signal });
}

const sick: HealthCheck = { name: "syncloop", problem: () => "stuck for 6 min" };
const well: HealthCheck = { name: "log", problem: () => undefined };

const cases = [
  { checks: [ping], target: "/healthz", status: 200, body: "ok" },
  { checks: [ping], target: "/healthz?verbose", status: 200, body: "[+]ping ok\nhealthz check passed\n" },
  { checks: [ping], target: "/healthz/ping", status: 200, body: "ok" },
  { checks: [ping, well, sick], target: "/healthz/log", status: 200, body: "ok" },
  {
    checks: [ping, well, sick],
    target: "/healthz",
    status: 500,
    body: "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n",
  },
  { checks: [ping, sick], target: "/healthz?exclude=syncloop", status: 200, body: "ok" },
  {
    checks: [ping, sick],
    target: "/healthz?exclude=syncloop&exclude=nope&verbose",
    status: 200,
    body: '[+]ping ok\n[+]syncloop excluded: ok\nwarn: some health checks cannot be excluded: no matches for "nope"\nhealthz check passed\n',
  },
  { checks: [sick], target: "/healthz/syncloop", status: 500, body: "internal server error: stuck for 6 min\n" },
];
for (const c of cases) {
  test(`${c.target} with ${c.checks.map((check) => check.name).join(", ")} answers ${c.status}`, async () => {
    const answer = await ask(healthRoutes(c.checks), c.target);
    assert.deepEqual({ status: answer?.status, body: answer?.body }, { status: c.status, body: c.body });
  });
}

test("the health port answers any method, so HEAD too", () => {
  for (const route of healthRoutes([ping])) assert.equal(route.methods, "any");
});

test("the pods of the read-only port are a v1 PodList, with and without the last slash", async () => {
  const pod: Pod = { metadata: { name: "web" }, spec: { containers: [] } };
  const routes = readOnlyRoutes({ pods: () => [pod], metrics: async () => "m 1\n", checks: [ping] });
  for (const path of ["/pods", "/pods/"]) {
    const answer = await ask(routes, path);
    assert.equal(answer?.type, "application/json");
    assert.deepEqual(JSON.parse(String(answer?.body)), {
      kind: "PodList",
      apiVersion: "v1",
      metadata: {},
      items: [pod],
    });
  }
  assert.deepEqual(await ask(routes, "/metrics"), {
    status: 200,
    type: "text/plain; version=0.0.4; charset=utf-8",
    body: "m 1\n",
  });
  assert.equal((await ask(routes, "/healthz"))?.body, "ok");
});
