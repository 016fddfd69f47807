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
  assert.deepEqual(await linesOf(metrics, /^rest/), [
    'rest_client_requests_total{code="200",method="GET",host="api:6443"} 2',
    'rest_client_requests_total{code="<error>",method="GET",host="api:6443"} 1',
  ]);
});
