import assert from "node:assert/strict";
import { test } from "node:test";
import { runtimeMetricsText } from "./runtime-metrics.ts";

const sample = (name: string, labels: readonly string[], value: number) =>
  ({ name, type: "counter", labels, value, at: 1000 }) as const;

test("metrics of the runtime are a page of families; what does not fit its family is left out", () => {
  const text = [
    ...runtimeMetricsText({
      families: [
        { name: "container_cpu_usage_seconds_total", help: "CPU\ntime", labels: ["id", "name"] },
        { name: "container_threads", help: "Threads", labels: [] },
        { name: "unused", help: "", labels: [] },
      ],
      samples: [
        sample("container_cpu_usage_seconds_total", ["/a", 'x"y'], 1),
        sample("container_cpu_usage_seconds_total", ["/b"], 2),
        sample("container_cpu_usage_seconds_total", ["/a", 'x"y'], 3),
        sample("without_family", [], 4),
        { ...sample("container_threads", [], 5), type: "gauge", at: 0 },
      ],
    }),
  ].join("");
  assert.equal(
    text,
    [
      "# HELP container_cpu_usage_seconds_total CPU\\ntime",
      "# TYPE container_cpu_usage_seconds_total counter",
      'container_cpu_usage_seconds_total{id="/a",name="x\\"y"} 3 1000',
      "# HELP container_threads Threads",
      "# TYPE container_threads gauge",
      "container_threads 5",
      "",
    ].join("\n"),
  );
});
