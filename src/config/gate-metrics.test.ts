import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "../lib/metrics.ts";
import { declareGateMetrics } from "./gate-metrics.ts";

test("every gate is shown with its stage and whether it is on", async () => {
  const metrics = new Metrics();
  declareGateMetrics(metrics, () => ({ PodAndContainerStatsFromCRI: true }));
  const { body } = await metrics.expose();
  assert.match(body, /^kubernetes_feature_enabled\{name="PodAndContainerStatsFromCRI",stage="ALPHA"\} 1$/m);
  assert.match(body, /^kubernetes_feature_enabled\{name="KubeletTracing",stage=""\} 1$/m);
  assert.match(body, /^kubernetes_feature_enabled\{name="\w+",stage="BETA"\} [01]$/m);
});
