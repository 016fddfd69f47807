import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "../../lib/metrics.ts";
import { operationOf, runtimeCallMetrics } from "./call-metrics.ts";
import { eventService, imageService, runtimeService } from "./methods.ts";

/** Every word that Kubernetes has for an operation, of the ones that this agent calls. */
const KNOWN = `version status run_podsandbox stop_podsandbox remove_podsandbox podsandbox_status list_podsandbox
  create_container start_container stop_container remove_container list_containers list_container_stats container_status update_container
  reopen_container_log exec exec_sync attach port_forward update_runtime_config runtime_config checkpoint_container
  get_container_events update_podsandbox_resources list_podsandbox_stats list_podsandbox_metrics
  list_metric_descriptors list_images image_status pull_image remove_image image_fs_info`.split(/\s+/);

test("each method of CRI has Kubernetes' word for it", () => {
  const paths = [...Object.values(runtimeService), ...Object.values(imageService)].map(({ path }) => path);
  assert.deepEqual(paths.map((path) => operationOf(path)).sort(), [...KNOWN].sort());
});

test("a method of somebody else is not counted", () => {
  assert.equal(operationOf(eventService.subscribe.path), undefined);
});

test("calls are counted with their time, and failed ones again as errors", async () => {
  const metrics = new Metrics();
  const ended = runtimeCallMetrics(metrics);
  ended({ path: runtimeService.runPodSandbox.path, tookMs: 240 });
  ended({ path: runtimeService.runPodSandbox.path, tookMs: 10, error: "Unavailable" });
  ended({ path: eventService.subscribe.path, tookMs: 10 });
  const { body } = await metrics.expose();
  assert.match(body, /^kubelet_runtime_operations_total\{operation_type="run_podsandbox"\} 2$/m);
  assert.match(body, /^kubelet_runtime_operations_errors_total\{operation_type="run_podsandbox"\} 1$/m);
  assert.match(body, /^kubelet_runtime_operations_duration_seconds_sum\{operation_type="run_podsandbox"\} 0\.25$/m);
  assert.match(
    body,
    /^kubelet_runtime_operations_duration_seconds_bucket\{operation_type="run_podsandbox",le="0.0125"\} 1$/m,
  );
  assert.doesNotMatch(body, /subscribe/);
});

test("sandboxes are measured by their runtime handler too", async () => {
  const metrics = new Metrics();
  const ended = runtimeCallMetrics(metrics);
  const { path } = runtimeService.runPodSandbox;
  ended({ path, tookMs: 500, handler: "" });
  ended({ path, tookMs: 250, handler: "gvisor", error: "Unavailable" });
  const { body } = await metrics.expose();
  assert.match(body, /^kubelet_run_podsandbox_duration_seconds_sum\{runtime_handler=""\} 0\.5$/m);
  assert.match(body, /^kubelet_run_podsandbox_errors_total\{runtime_handler="gvisor"\} 1$/m);
});
