import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "../../lib/metrics.ts";
import { restClientMetrics } from "./client-metrics.ts";

async function linesOf(metrics: Metrics, pattern: RegExp): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line));
}

test("answers of the API server are counted", async () => {
  const metrics = new Metrics();
  const answered = restClientMetrics(metrics);
  for (const code of ["200", "200", "<error>"]) answered({ code, method: "GET", host: "api:6443" });
  assert.deepEqual(await linesOf(metrics, /^rest_client_requests_total/), [
    'rest_client_requests_total{code="200",method="GET",host="api:6443"} 2',
    'rest_client_requests_total{code="<error>",method="GET",host="api:6443"} 1',
  ]);
});

test("the latency of calls is measured by verb and host, that of watches is not", async () => {
  const metrics = new Metrics();
  const answered = restClientMetrics(metrics);
  answered({ code: "200", method: "PATCH", host: "api:6443", tookMs: 30 });
  answered({ code: "200", method: "GET", host: "api:6443" });
  const lines = await linesOf(metrics, /^rest_client_request_duration_seconds_(sum|count|bucket.*le="0.(025|1)")/);
  assert.deepEqual(lines, [
    'rest_client_request_duration_seconds_bucket{verb="PATCH",host="api:6443",le="0.025"} 0',
    'rest_client_request_duration_seconds_bucket{verb="PATCH",host="api:6443",le="0.1"} 1',
    'rest_client_request_duration_seconds_sum{verb="PATCH",host="api:6443"} 0.03',
    'rest_client_request_duration_seconds_count{verb="PATCH",host="api:6443"} 1',
  ]);
});
