import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "../lib/metrics.ts";
import { gcMetrics } from "./gc-metrics.ts";

test("removed images are counted by reason, and so are their bytes", async () => {
  const metrics = new Metrics();
  const { imageRemoved } = gcMetrics(metrics);
  imageRemoved("space", 300);
  imageRemoved("space", 40);
  imageRemoved("age", 5);
  const { body } = await metrics.expose();
  assert.deepEqual(
    body.split("\n").filter((line) => line !== "" && !line.startsWith("#")),
    [
      'kubelet_image_garbage_collected_total{reason="space"} 2',
      'kubelet_image_garbage_collected_total{reason="age"} 1',
      'kubelet_ts_image_garbage_collected_bytes_total{reason="space"} 340',
      'kubelet_ts_image_garbage_collected_bytes_total{reason="age"} 5',
    ],
  );
});
