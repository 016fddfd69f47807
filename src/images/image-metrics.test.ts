import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "../lib/metrics.ts";
import { imageMetrics, sizeClass } from "./image-metrics.ts";

const classes: [number, string][] = [
  [0, "N/A"],
  [1, "0-10MB"],
  [10 * 2 ** 20, "0-10MB"],
  [10 * 2 ** 20 + 1, "10MB-100MB"],
  [2 ** 30, "500MB-1GB"],
  [100 * 2 ** 30, "60GB-100GB"],
  [101 * 2 ** 30, "GT100GB"],
];
for (const [bytes, want] of classes) test(`${bytes} bytes are ${want}`, () => assert.equal(sizeClass(bytes), want));

test("pulls are measured by size, and requests counted by what was there", async () => {
  const metrics = new Metrics();
  const { asked, pulled } = imageMetrics(metrics);
  asked({ isPresent: true, policy: "IfNotPresent", isRequired: false });
  asked({ isPresent: undefined, policy: "Always", isRequired: true });
  pulled(1500, 5_000_000);
  const { body } = await metrics.expose();
  assert.match(body, /requests_total\{present_locally="true",pull_policy="ifnotpresent",pull_required="false"\} 1$/m);
  assert.match(body, /requests_total\{present_locally="unknown",pull_policy="always",pull_required="true"\} 1$/m);
  assert.match(body, /^kubelet_image_pull_duration_seconds_sum\{image_size_in_bytes="0-10MB"\} 1.5$/m);
});

test("a pull duration has the buckets of Kubernetes", async () => {
  const metrics = new Metrics();
  imageMetrics(metrics).pulled(1000, 1);
  const { body } = await metrics.expose();
  const bounds = [...body.matchAll(/duration_seconds_bucket\{.*le="([^"]+)"\}/g)].map(([, bound]) => bound);
  const want = [1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600];
  assert.deepEqual(bounds, [...want.map(String), "+Inf"]);
});
