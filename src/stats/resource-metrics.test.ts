import assert from "node:assert/strict";
import { test } from "node:test";
import { resourceMetrics } from "./resource-metrics.ts";
import type { NodeSample, PodSample, UsageSample } from "./samples.ts";

function usage(workingSet: number, swapLimit?: number): UsageSample {
  const limits = swapLimit === undefined ? {} : { swapLimit };
  const memory = { usage: 1, workingSet, rss: 1, pageFaults: 1, majorPageFaults: 1, swap: 4, ...limits };
  return { at: { wall: 5000.7, mono: 0 }, cpu: { usageNanos: 2.5e9 }, memory };
}

const node: NodeSample = {
  usage: usage(800),
  swap: { total: 10, free: 3 },
  network: [],
  system: [],
  classes: [],
  filesystems: [],
  disks: { at: { wall: 0, mono: 0 } },
  bootedAt: 1,
};
const pod: PodSample = {
  uid: "u",
  name: "web",
  namespace: "default",
  startedAt: 1000,
  usage: usage(200),
  containers: [{ id: "c1", name: "main", cgroup: "/c1", image: "", startedAt: 1500, usage: usage(100, 64) }],
};

test("the page of metrics-server: names, labels, and the times of the samples", () => {
  const lines = resourceMetrics(node, [pod])
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const of = 'namespace="default",pod="web"';
  assert.deepEqual(lines, [
    `container_cpu_usage_seconds_total{container="main",${of}} 2.5 5000`,
    `container_memory_working_set_bytes{container="main",${of}} 100 5000`,
    `container_start_time_seconds{container="main",${of}} 1.5`,
    `container_swap_limit_bytes{container="main",${of}} 64 5000`,
    `container_swap_usage_bytes{container="main",${of}} 4 5000`,
    "node_cpu_usage_seconds_total 2.5 5000",
    "node_memory_working_set_bytes 800 5000",
    "node_swap_usage_bytes 7 5000",
    `pod_cpu_usage_seconds_total{${of}} 2.5 5000`,
    `pod_memory_working_set_bytes{${of}} 200 5000`,
    `pod_swap_usage_bytes{${of}} 4 5000`,
    "resource_scrape_error 0",
  ]);
  const page = resourceMetrics(node, [pod]);
  assert.match(page, /^# HELP pod_swap_usage_bytes \[ALPHA\] .* Reported only on non-windows systems$/m);
  assert.match(page, /^# TYPE pod_cpu_usage_seconds_total counter$/m);
});

test("a node that was not sampled is an error of the scrape", () => {
  assert.match(resourceMetrics(undefined, []), /^resource_scrape_error 1$/m);
});

test("a metric that Kubernetes has hidden is shown where that is asked for", () => {
  assert.doesNotMatch(resourceMetrics(node, []), /^scrape_error/m);
  const page = resourceMetrics(node, [], { showsHidden: true });
  assert.match(
    page,
    /^# HELP scrape_error \[ALPHA\] \(Deprecated since 1\.29\.0\) 1 if .*\n# TYPE scrape_error gauge\nscrape_error 0$/m,
  );
});
