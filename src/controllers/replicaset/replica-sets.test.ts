import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { podsOf, runPods, setPodStatus } from "../../../test/support/bench-pods.ts";
import { ControllerBench } from "../../../test/support/controllers.ts";
import { EVENTS, NAMESPACES, PODS, REPLICA_SETS } from "../../adapters/kubeapi/index.ts";
import type { Pod, ReplicaSetSpec } from "../../model/generated/types.ts";
import { replicaSetController } from "./replica-sets.ts";
import { deletionOrder } from "./scale-down.ts";

const labels = { app: "a" };
const containers = [{ name: "c", image: "x" }];

async function bench(t: TestContext, spec: Partial<ReplicaSetSpec> = {}) {
  const made = await ControllerBench.start(replicaSetController);
  t.after(() => made.close());
  const template = { metadata: { labels }, spec: { containers } };
  const full = { replicas: 2, selector: { matchLabels: labels }, template, ...spec };
  const create = async () => {
    const object = { metadata: { name: "a" }, spec: full };
    await made.api.create(REPLICA_SETS, { namespace: "default", object }, made.signal);
    await made.settle();
  };
  const get = () => made.api.get(REPLICA_SETS, { namespace: "default", name: "a" }, made.signal);
  const scale = async (replicas: number) => {
    const body = { spec: { replicas } };
    await made.api.patch(REPLICA_SETS, { namespace: "default", name: "a", type: "merge", body }, made.signal);
    await made.settle();
  };
  return { made, create, get, scale };
}

test("pods are created with the template, the owner and a generated name", async (t) => {
  const { made, create, get } = await bench(t);
  await create();
  const pods = await podsOf(made);
  assert.equal(pods.length, 2);
  for (const { metadata } of pods) {
    assert.match(metadata.name ?? "", /^a-[a-z0-9]{5}$/);
    assert.deepEqual(metadata.labels, labels);
    assert.equal(metadata.generateName, "a-");
  }
  const [reference] = pods[0]?.metadata.ownerReferences ?? [];
  const { uid } = (await get()).metadata;
  const wanted = {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    name: "a",
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  assert.deepEqual({ ...reference }, wanted);
  const events = (await made.api.list(EVENTS, { namespace: "default" }, made.signal)).items;
  assert.deepEqual(events.map(({ reason, message }) => `${reason} ${message}`).sort(), [
    ...pods.map(({ metadata }) => `SuccessfulCreate Created pod: ${metadata.name}`).sort(),
  ]);
});

test("the status follows the pods", async (t) => {
  const { made, create, get } = await bench(t, { minReadySeconds: 10 });
  await create();
  assert.deepEqual(
    { ...(await get()).status },
    {
      replicas: 2,
      fullyLabeledReplicas: 2,
      terminatingReplicas: 0,
      observedGeneration: 1,
    },
  );
  await runPods(made);
  assert.deepEqual([(await get()).status?.readyReplicas, (await get()).status?.availableReplicas ?? 0], [2, 0]);
  await made.advance(10_000);
  assert.equal((await get()).status?.availableReplicas, 2);
});

test("a pod that is lost or has failed is replaced", async (t) => {
  const { made, create } = await bench(t);
  await create();
  await runPods(made);
  const [first, second] = await podsOf(made);
  assert.ok(first && second);
  await made.api.delete(PODS, { namespace: "default", name: first.metadata.name ?? "" }, made.signal);
  await setPodStatus(made, second, { phase: "Failed" });
  await runPods(made);
  const running = (await podsOf(made)).filter(({ status }) => status?.phase === "Running");
  assert.equal(running.length, 2);
  assert.ok(!running.some(({ metadata }) => metadata.uid === first.metadata.uid));
});

test("a smaller set deletes pods that are not ready first", async (t) => {
  const { made, create, scale, get } = await bench(t, { replicas: 3 });
  await create();
  const [first] = await podsOf(made);
  await runPods(made, ({ metadata }) => metadata.name === first?.metadata.name);
  await scale(1);
  await runPods(made);
  assert.deepEqual(
    (await podsOf(made)).map(({ metadata }) => metadata.name),
    [first?.metadata.name],
  );
  assert.equal((await get()).status?.replicas, 1);
});

test("matching pods are adopted, and released when they no longer match", async (t) => {
  const { made, create } = await bench(t, { replicas: 1 });
  const lone = { metadata: { name: "lone", labels }, spec: { containers } };
  await made.api.create(PODS, { namespace: "default", object: lone }, made.signal);
  await create();
  assert.deepEqual(
    (await podsOf(made)).map(({ metadata }) => metadata.name),
    ["lone"],
  );
  assert.equal((await podsOf(made))[0]?.metadata.ownerReferences?.[0]?.name, "a");
  const body = { metadata: { labels: { app: "other" } } };
  await made.api.patch(PODS, { namespace: "default", name: "lone", type: "merge", body }, made.signal);
  await made.settle();
  const pods = await podsOf(made);
  assert.equal(pods.length, 2);
  assert.equal(pods.find(({ metadata }) => metadata.name === "lone")?.metadata.ownerReferences, undefined);
});

test("nothing is written while nothing changes", async (t) => {
  const { made, create } = await bench(t);
  await create();
  await runPods(made);
  assert.equal(await made.writesWithin(3_600_000), 0);
});

test("a pod that cannot be created is reported and retried", async (t) => {
  const { made, create, get } = await bench(t, {
    replicas: 1,
    template: { metadata: { labels }, spec: { containers, serviceAccountName: "missing" } },
  });
  await create();
  const [condition] = (await get()).status?.conditions ?? [];
  assert.equal(condition?.type, "ReplicaFailure");
  assert.equal(condition?.reason, "FailedCreate");
  assert.match(condition?.message ?? "", /serviceaccount "missing" not found/);
  const events = (await made.api.list(EVENTS, { namespace: "default" }, made.signal)).items;
  assert.deepEqual(
    events.map(({ type, reason }) => `${type} ${reason}`),
    ["Warning FailedCreate"],
  );
  assert.match(events[0]?.message ?? "", /^Error creating: .*serviceaccount "missing" not found/);
});

test("no pod is created in a namespace that is being deleted, and that is no warning", async (t) => {
  const { made } = await bench(t);
  const { api, signal } = made;
  await api.create(NAMESPACES, { object: { metadata: { name: "going" }, spec: {} } }, signal);
  const template = { metadata: { labels }, spec: { containers } };
  const object = { metadata: { name: "a" }, spec: { replicas: 1, selector: { matchLabels: labels }, template } };
  await api.create(REPLICA_SETS, { namespace: "going", object }, signal);
  await made.settle();
  await api.delete(NAMESPACES, { name: "going" }, signal);
  const body = { spec: { replicas: 3 } };
  await api.patch(REPLICA_SETS, { namespace: "going", name: "a", type: "merge", body }, signal);
  await made.settle();
  assert.equal((await podsOf(made, "going")).length, 1);
  const events = (await api.list(EVENTS, { namespace: "going" }, signal)).items;
  assert.deepEqual(
    events.map(({ reason }) => reason),
    ["SuccessfulCreate"],
  );
  const { status } = await api.get(REPLICA_SETS, { namespace: "going", name: "a" }, signal);
  assert.equal(status?.conditions, undefined);
});

const at = (seconds: number) => `2026-01-01T00:00:${String(seconds).padStart(2, "0")}Z`;
const pod = (
  uid: string,
  more: { cost?: string; ready?: number; node?: boolean; phase?: string; restarts?: number },
): Pod => ({
  metadata: {
    uid,
    creationTimestamp: at(0),
    ...(more.cost && { annotations: { "controller.kubernetes.io/pod-deletion-cost": more.cost } }),
  },
  spec: { containers: [], ...(more.node !== false && { nodeName: "n" }) },
  status: {
    phase: more.phase ?? "Running",
    ...(more.ready !== undefined && {
      conditions: [{ type: "Ready", status: "True", lastTransitionTime: at(more.ready) }],
    }),
    containerStatuses: [{ name: "c", image: "x", imageID: "", ready: true, restartCount: more.restarts ?? 0 }],
  },
});
const orders = [
  { name: "without a node", less: pod("b", { node: false }), more: pod("a", {}) },
  { name: "pending", less: pod("b", { phase: "Pending" }), more: pod("a", {}) },
  { name: "not ready", less: pod("b", {}), more: pod("a", { ready: 1 }) },
  { name: "of a lower cost", less: pod("b", { ready: 1, cost: "-5" }), more: pod("a", { ready: 1, cost: "3" }) },
  { name: "ready for a shorter time", less: pod("b", { ready: 55 }), more: pod("a", { ready: 1 }) },
  { name: "ready about as long, by UID", less: pod("a", { ready: 1 }), more: pod("b", { ready: 2 }) },
  {
    name: "ready since nobody knows when",
    less: { ...pod("b", {}), status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } },
    more: pod("a", { ready: 1 }),
  },
  { name: "restarted more often", less: pod("b", { ready: 1, restarts: 3 }), more: pod("a", { ready: 1 }) },
];
for (const { name, less, more } of orders) {
  test(`deleted first: ${name}`, () => {
    const now = Date.parse("2026-01-01T00:01:00Z");
    assert.deepEqual(deletionOrder([more, less], now), [less, more]);
    assert.deepEqual(deletionOrder([less, more], now), [less, more]);
  });
}
