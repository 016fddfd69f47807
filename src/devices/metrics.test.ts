import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "../lib/metrics.ts";
import { deviceMetrics } from "./metrics.ts";

test("registrations are counted by resource, of 500 resources at most", async () => {
  const metrics = new Metrics();
  const { registered } = deviceMetrics(metrics);
  for (let at = 0; at < 600; at++) registered(`example.com/r${at}`);
  registered("example.com/r7");
  registered("example.com/r599");
  const { body } = await metrics.expose();
  const lines = body.split("\n").filter((line) => line.startsWith("kubelet_device_plugin_registration_total{"));
  assert.equal(lines.length, 500);
  assert.ok(lines.includes('kubelet_device_plugin_registration_total{resource_name="example.com/r7"} 2'));
});
