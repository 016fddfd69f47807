import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { pod } from "../../../test/support/pods.ts";
import { FakeRing } from "../../../test/support/ring.ts";
import type { Pod } from "../../model/generated/types.ts";

const needs = (name: string, cpu: string): Pod =>
  pod(name)
    .container("app", { resources: { requests: { cpu } } })
    .build();
const asStatic = (of: Pod): Pod => ({
  ...of,
  metadata: { ...of.metadata, annotations: { "kubernetes.io/config.source": "file" } },
});
const one = needs("one", "1500m");
const two = needs("two", "1");

describe("a pod that does not fit", () => {
  test("is Failed with the reason, and gets no worker", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    assert.equal(ring.status("one")?.phase, "Running");
    const { phase, reason, message, qosClass } = ring.status("two") ?? {};
    assert.deepEqual([phase, reason, qosClass], ["Failed", "OutOfcpu", "Burstable"]);
    const numbers = "requested: 1000, used: 1500, capacity: 2000";
    assert.equal(message, `Pod was rejected: Node didn't have enough resource: cpu, ${numbers}`);
    assert.equal(ring.pool.worker("uid-of-two"), undefined);
  });

  test("stays refused over a restart of the agent, also when there is room by then", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    await ring.restartAgent();
    await ring.want(two);
    assert.equal(ring.status("two")?.reason, "OutOfcpu");
    assert.deepEqual(await ring.containers().then((all) => all.filter(({ state }) => state === "running")), []);
  });

  test("is decided anew when the node is another one", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    ring.node = { ...ring.node, allocatable: { ...ring.node.allocatable, cpu: "4" } };
    await ring.restartAgent();
    await ring.want(one, two);
    assert.equal(ring.status("two")?.phase, "Running");
  });

  test("is forgotten when it is removed", async () => {
    const ring = new FakeRing();
    await ring.want(one, two);
    await ring.want(one);
    assert.equal(ring.status("two"), undefined);
    await ring.want();
    await ring.clock.advance(60_000);
    await ring.want(two);
    assert.equal(ring.status("two")?.phase, "Running");
  });

  test("waits instead when the room it needs is just becoming free", async () => {
    const ring = new FakeRing({ app: { termMs: 5000 } });
    await ring.want(one);
    await ring.want(two);
    assert.equal(ring.status("two"), undefined);
    await ring.clock.advance(5000);
    assert.equal(ring.status("two")?.phase, "Running");
  });
});

describe("a pod that runs", () => {
  test("was admitted, and is not asked again after a restart of the agent", async () => {
    const ring = new FakeRing();
    await ring.want(one);
    const before = await ring.containers();
    ring.node = { ...ring.node, allocatable: { cpu: "1" } };
    await ring.restartAgent();
    await ring.want(one);
    assert.equal(ring.status("one")?.phase, "Running");
    assert.deepEqual(await ring.containers(), before);
  });
});

describe("a critical pod", () => {
  test("takes the place of another, which ends as Failed and says so", async () => {
    const ring = new FakeRing({ app: { termMs: 3000 } });
    await ring.want(one);
    await ring.want(one, asStatic(two));
    assert.equal(ring.status("two"), undefined, "it waits for the end of the other");
    assert.equal(ring.status("one")?.phase, "Running", "which is not over before it has stopped");
    await ring.clock.advance(3000);
    assert.deepEqual([ring.status("one")?.phase, ring.status("one")?.reason], ["Failed", "Preempting"]);
    const disruption = ring.status("one")?.conditions?.find(({ type }) => type === "DisruptionTarget");
    assert.deepEqual([disruption?.status, disruption?.reason], ["True", "TerminationByKubelet"]);
    assert.equal(ring.status("two")?.phase, "Running");
    assert.ok(ring.journal.events(0).some(({ reason }) => reason === "Preempting"));
  });
});
