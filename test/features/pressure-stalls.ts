/** Pressure stalls (PSI) of node, pods and containers on cgroup v2, as the summary and the metrics have them. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { http } from "../integration/support/http.ts";
import { FOREVER, manifest, shell } from "../integration/support/manifests.ts";
import { type Agent, requireMachine, Site } from "../integration/support/site.ts";
import { until } from "../integration/support/until.ts";

requireMachine();

/** The parts of the summary that have pressure stalls. */
type Stalls = Partial<Record<"cpu" | "memory" | "io", { psi?: { some: { total: number } } }>>;
interface Summary {
  readonly node: Stalls;
  readonly pods: readonly (Stalls & { podRef: { name: string }; containers: readonly Stalls[] })[];
}

function whyNot(): string | false {
  if (!existsSync("/sys/fs/cgroup/cgroup.controllers")) return "this machine has no unified cgroups";
  return !existsSync("/proc/pressure/cpu") && "the kernel has no pressure stalls";
}

describe("pressure stalls", { skip: whyNot() }, () => {
  const site = new Site();
  let agent: Agent;

  before(async () => {
    agent = await site.up();
  });
  after(() => site.close());

  it("of node, pod and container are in the summary and the metrics", async () => {
    const page = async (path: string) => (await http(`http://127.0.0.1:${agent.readOnlyPort}${path}`)).body;
    site.write(manifest("one", { containers: [shell("main", FOREVER)] }));
    const { node, pod } = await until("the pod is in the summary", async () => {
      const summary = JSON.parse(await page("/stats/summary")) as Summary;
      const found = summary.pods.find(({ podRef }) => podRef.name.startsWith("one-"));
      return found?.containers[0]?.memory?.psi !== undefined && { node: summary.node, pod: found };
    });
    for (const usage of [node, pod, ...pod.containers]) {
      for (const part of ["cpu", "memory", "io"] as const)
        assert.equal(typeof usage[part]?.psi?.some.total, "number", part);
    }
    assert.match(await page("/metrics/cadvisor"), /^container_pressure_memory_waiting_seconds_total\{/m);
  });
});
