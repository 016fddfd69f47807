import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "./metrics.ts";
import { declareProcessMetrics } from "./process-metrics.ts";

async function linesOf(metrics: Metrics, pattern: RegExp): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line));
}

test("the process declares its version and memory", async () => {
  const metrics = new Metrics();
  declareProcessMetrics(metrics, "v1.36.3-mine");
  const [line = ""] = await linesOf(metrics, /^kubernetes_build_info/);
  assert.match(line, /\{major="1",minor="36",git_version="v1.36.3-mine",.*platform="linux\/\w+"\} 1$/);
  assert.match((await linesOf(metrics, /^process_resident_memory_bytes/))[0] ?? "", / \d{7,}$/);
  for (const name of ["cpu_seconds_total", "open_fds", "max_fds", "virtual_memory_bytes", "virtual_memory_max_bytes"]) {
    assert.match((await linesOf(metrics, new RegExp(`^process_${name} `)))[0] ?? "", / [1-9]/, name);
  }
});
