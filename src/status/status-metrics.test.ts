import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { Metrics } from "../lib/metrics.ts";
import { statusMetrics } from "./status-metrics.ts";

async function linesOf(metrics: Metrics, pattern: RegExp): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line));
}

test("mirrors are counted among the pods of the server, and statuses measured", async () => {
  const metrics = new Metrics();
  const web = pod("web").build();
  const annotations = { "kubernetes.io/config.mirror": "hash" };
  const sent = statusMetrics(metrics, () => [web, { ...web, metadata: { ...web.metadata, annotations } }]);
  sent(2000);
  assert.deepEqual(await linesOf(metrics, /mirror|_sum/), [
    "kubelet_mirror_pods 1",
    "kubelet_pod_status_sync_duration_seconds_sum 2",
  ]);
});
