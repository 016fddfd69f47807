import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ControllerBench } from "../../../test/support/controllers.ts";
import { EVENTS, NODES, PODS } from "../../adapters/kubeapi/index.ts";
import type { PodSpec } from "../../model/generated/types.ts";
import { schedulerController } from "./scheduler.ts";

async function bench(t: TestContext) {
  const made = await ControllerBench.start(schedulerController);
  t.after(() => made.close());
  const create = async (name: string, spec: Partial<PodSpec> = {}) => {
    const object = { metadata: { name }, spec: { containers: [{ name: "c", image: "x" }], ...spec } };
    await made.api.create(PODS, { namespace: "default", object }, made.signal);
    await made.settle();
  };
  const get = (name: string) => made.api.get(PODS, { namespace: "default", name }, made.signal);
  const reasons = async () =>
    (await made.api.list(EVENTS, { namespace: "default" }, made.signal)).items.map(
      ({ reason, message, count }) => `${reason} ${count}: ${message}`,
    );
  return { made, create, get, reasons };
}

test("a pod is bound as soon as it is there, and an event says so", async (t) => {
  const { made, create, get, reasons } = await bench(t);
  await made.addNode();
  await create("a");
  const pod = await get("a");
  assert.equal(pod.spec.nodeName, "node");
  assert.equal(pod.status?.conditions?.find(({ type }) => type === "PodScheduled")?.status, "True");
  assert.deepEqual(await reasons(), ["Scheduled 1: Successfully assigned default/a to node"]);
});

test("a pod that fits nowhere says why, once, and is bound when it fits", async (t) => {
  const { made, create, get, reasons } = await bench(t);
  await create("a", { nodeSelector: { disk: "ssd" } });
  assert.equal((await get("a")).status?.conditions?.[0]?.message, "no nodes available to schedule pods");
  await made.addNode();
  const message =
    "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.";
  assert.deepEqual((await get("a")).status?.conditions?.[0], {
    type: "PodScheduled",
    status: "False",
    reason: "Unschedulable",
    message,
    lastProbeTime: null,
    lastTransitionTime: "2026-01-01T00:00:00Z",
    observedGeneration: 1,
  });
  const heartbeat = { metadata: { annotations: { beat: "1" } } };
  await made.api.patch(NODES, { name: "node", type: "merge", body: heartbeat }, made.signal);
  await made.settle();
  assert.equal((await reasons()).filter((line) => line.includes("affinity")).length, 1);
  await made.api.patch(
    NODES,
    { name: "node", type: "merge", body: { metadata: { labels: { disk: "ssd" } } } },
    made.signal,
  );
  await made.settle();
  assert.equal((await get("a")).spec.nodeName, "node");
});

test("pods that come at once share what there is", async (t) => {
  const { made, create, get } = await bench(t);
  await made.addNode("node", { cpu: "1", memory: "1Gi", pods: "10" });
  const resources = { requests: { cpu: "600m" } };
  const containers = [{ name: "c", image: "x", resources }];
  await Promise.all([create("a", { containers }), create("b", { containers })]);
  const bound = [await get("a"), await get("b")].filter(({ spec }) => spec.nodeName === "node");
  assert.equal(bound.length, 1);
  const [first] = bound;
  await made.api.delete(PODS, { namespace: "default", name: first?.metadata.name ?? "", graceSeconds: 0 }, made.signal);
  await made.settle();
  const other = first?.metadata.name === "a" ? "b" : "a";
  assert.equal((await get(other)).spec.nodeName, "node");
});

test("pods of other schedulers, with gates or with a node are left alone", async (t) => {
  const { made, create, get } = await bench(t);
  await made.addNode();
  await create("other", { schedulerName: "mine" });
  await create("gated", { schedulingGates: [{ name: "example.com/wait" }] });
  assert.equal((await get("other")).spec.nodeName, undefined);
  assert.equal((await get("gated")).spec.nodeName, undefined);
  const open = { spec: { schedulingGates: null } };
  await made.api.patch(PODS, { namespace: "default", name: "gated", type: "merge", body: open }, made.signal);
  await made.settle();
  assert.equal((await get("gated")).spec.nodeName, "node");
});

test("a heartbeat of the node looks at no pod that waits", async (t) => {
  let looks = 0;
  const made = await ControllerBench.start((deps) => {
    const of: typeof deps.informers.of = (resource) => {
      const informer = deps.informers.of(resource);
      if (resource.kind !== "Pod") return informer;
      const list: typeof informer.list = (namespace) => {
        looks++;
        return informer.list(namespace);
      };
      return new Proxy(informer, {
        get: (from, name) => (name === "list" ? list : Reflect.get(from, name).bind(from)),
      });
    };
    return schedulerController({ ...deps, informers: { of } as typeof deps.informers });
  });
  t.after(() => made.close());
  await made.addNode("node", { cpu: "1", pods: "0" });
  const object = { metadata: { name: "a" }, spec: { containers: [{ name: "c", image: "x" }] } };
  await made.api.create(PODS, { namespace: "default", object }, made.signal);
  await made.settle();
  const beat = async (condition: object) => {
    const before = looks;
    const body = { status: { conditions: [{ type: "Ready", status: "True", ...condition }] } };
    await made.api.patch(NODES, { name: "node", type: "merge", subresource: "status", body }, made.signal);
    await made.settle();
    return looks - before;
  };
  assert.equal(await beat({ lastHeartbeatTime: "2026-01-01T00:00:10Z" }), 0);
  assert.ok((await beat({ status: "False" })) > 0);
});
