import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../lib/clock.ts";
import { Metrics } from "../../lib/metrics.ts";
import { relistMetrics } from "./observer-metrics.ts";

async function linesOf(metrics: Metrics, pattern: RegExp): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line));
}

test("duration and interval of relists are observed", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const listed = relistMetrics(metrics, clock);
  listed(500);
  await clock.advance(60_000);
  listed(1500);
  assert.deepEqual(await linesOf(metrics, /_(sum|count)/), [
    "kubelet_pleg_relist_duration_seconds_sum 2",
    "kubelet_pleg_relist_duration_seconds_count 2",
    "kubelet_pleg_relist_interval_seconds_sum 60",
    "kubelet_pleg_relist_interval_seconds_count 1",
  ]);
});
