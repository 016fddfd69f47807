/** A full node and a pod that matters more: who has to go, when, and what is said of it; on real containers. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Pod, PodSpec } from "../../src/model/generated/types.ts";
import { manifest, shell } from "./support/manifests.ts";
import { type Agent, ids, requireMachine, Site } from "./support/site.ts";
import { said, statusOf } from "./support/told.ts";

requireMachine();

/** That of the class system-node-critical. */
const NODE_CRITICAL = 2_000_001_000;
/** Takes a second to end once it is told to, which it hears when it is ready. */
const LINGERS = "trap 'sleep 1; exit 0' TERM; echo ready; while :; do sleep 0.1; done";

describe("a node that is full", () => {
  const site = new Site();
  let agent: Agent;

  const pod = (name: string, priority: number, more: Partial<PodSpec> = {}): Pod =>
    manifest(name, { priority, containers: [shell("main", LINGERS)], terminationGracePeriodSeconds: 10, ...more });

  before(async () => {
    agent = await site.up(["--max-pods=2"]);
  });
  after(() => site.close());

  it("makes room for a critical pod: the one that asks for least goes, and is over before the other begins", async () => {
    const resources = { requests: { memory: "10Mi" } };
    site.write(pod("burstable", 10, { containers: [shell("main", LINGERS, { resources })] }));
    site.write(pod("best-effort", 10));
    const kept = await site.running("burstable");
    const victim = await site.running("best-effort");
    await said(site, "best-effort", /ready/);
    site.write(pod("vital", NODE_CRITICAL, { priorityClassName: "system-node-critical" }));
    const vital = await site.running("vital");
    await site.event("Preempting", "best-effort", /^Preempted in order to admit critical pod$/);
    const over = await statusOf(agent, "best-effort");
    // Its container ended with 0.
    assert.deepEqual([over?.phase, over?.reason], ["Succeeded", "Preempting"]);
    const ended = over?.containerStatuses?.[0]?.state?.terminated;
    const begun = (await statusOf(agent, "vital"))?.containerStatuses?.[0]?.state?.running;
    // Both have the resolution of a second; it took one to end.
    assert.ok(
      Date.parse(ended?.finishedAt ?? "") <= Date.parse(begun?.startedAt ?? ""),
      JSON.stringify({ ended, begun }),
    );
    assert.equal(ended?.exitCode, 0);
    const left = (await site.containers(victim.uid)).filter(({ state }) => state === "running");
    assert.deepEqual(left, []);
    assert.deepEqual(ids(await site.running("burstable")), ids(kept));
    assert.deepEqual(ids(await site.running("vital")), ids(vital));
  });

  it("turns away who matters no more than those that are there, and nobody has to go", async () => {
    const before = [ids(await site.running("burstable")), ids(await site.running("vital"))];
    site.write(pod("equal", 10));
    await site.pod("equal", "is rejected", ({ phase }) => phase === "Failed");
    const { reason, message } = (await statusOf(agent, "equal")) ?? {};
    // A static pod is critical: it is rejected because preemption finds nobody, not for the shortage itself.
    assert.equal(reason, "UnexpectedAdmissionError");
    assert.match(message ?? "", /no set of running pods found to reclaim resources: \[\(res: pods, q: 1\), \]$/);
    assert.deepEqual([ids(await site.running("burstable")), ids(await site.running("vital"))], before);
  });
});
