import assert from "node:assert/strict";
import { test } from "node:test";
import { withStability } from "./metric-stability.ts";

test("the help says how long a metric is kept, but for what all programs have", () => {
  assert.equal(withStability("kubelet_running_pods", "Pods."), "[ALPHA] Pods.");
  assert.equal(withStability("prober_probe_total", "Probes."), "[BETA] Probes.");
  assert.equal(withStability("process_open_fds", "Files."), "Files.");
});
