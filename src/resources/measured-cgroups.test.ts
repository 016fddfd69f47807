import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { Metrics } from "../lib/metrics.ts";
import { measuredCgroups } from "./measured-cgroups.ts";

async function linesOf(metrics: Metrics, pattern: RegExp): Promise<string[]> {
  const { body } = await metrics.expose();
  return body.split("\n").filter((line) => !line.startsWith("#") && pattern.test(line));
}

test("changes of cgroups are measured, failed ones too, and their version told", async () => {
  const [metrics, clock] = [new Metrics(), new FakeClock()];
  const tree = {
    ensure: () => clock.advance(500),
    set: () => Promise.reject(new Error("no")),
    forget: async () => undefined,
    exists: () => true,
    read: () => undefined,
    memoryUsage: () => 7,
    unreclaimable: () => 5,
    childrenOf: () => [],
  };
  const measured = measuredCgroups(metrics, clock, { tree, version: 2 });
  await measured.ensure("/a");
  await assert.rejects(measured.set("/a", {}), /no/);
  assert.equal(measured.memoryUsage("/a", "id"), 7);
  assert.deepEqual(await linesOf(metrics, /version|_sum|_count/), [
    "kubelet_cgroup_version 2",
    'kubelet_cgroup_manager_duration_seconds_sum{operation_type="create"} 0.5',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="create"} 1',
    'kubelet_cgroup_manager_duration_seconds_sum{operation_type="update"} 0',
    'kubelet_cgroup_manager_duration_seconds_count{operation_type="update"} 1',
  ]);
});
