import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { podsOf, runPods, setPodStatus } from "../../../test/support/bench-pods.ts";
import { ControllerBench } from "../../../test/support/controllers.ts";
import { CONTROLLER_REVISIONS, DAEMON_SETS, EVENTS, NODES, PODS } from "../../adapters/kubeapi/index.ts";
import type { DaemonSetSpec } from "../../model/generated/types.ts";
import { schedulerController } from "../scheduler/scheduler.ts";
import { daemonSetController } from "./daemon-sets.ts";

const labels = { app: "a" };

async function bench(t: TestContext, spec: Partial<DaemonSetSpec> = {}) {
  const made = await ControllerBench.start(daemonSetController, schedulerController);
  t.after(() => made.close());
  await made.addNode();
  const { api, signal } = made;
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "x:1" }] } };
  const full = { selector: { matchLabels: labels }, template, ...spec };
  await api.create(DAEMON_SETS, { namespace: "default", object: { metadata: { name: "d" }, spec: full } }, signal);
  await made.settle();
  const get = () => api.get(DAEMON_SETS, { namespace: "default", name: "d" }, signal);
  const patch = async (body: object) => {
    await api.patch(DAEMON_SETS, { namespace: "default", name: "d", type: "strategic", body }, signal);
    await made.settle();
  };
  const setImage = (image: string) => patch({ spec: { template: { spec: { containers: [{ name: "c", image }] } } } });
  const images = async () => (await podsOf(made)).map((pod) => pod.spec.containers[0]?.image).sort();
  const patchNode = async (body: object) => {
    await api.patch(NODES, { name: "node", type: "merge", body }, signal);
    await made.settle();
  };
  return { made, get, patch, setImage, images, patchNode };
}

test("a node gets one pod, which tolerates what nodes go through", async (t) => {
  const { made, get } = await bench(t);
  await runPods(made);
  const pods = await podsOf(made);
  assert.equal(pods.length, 1);
  const [pod] = pods;
  assert.equal(pod?.spec.nodeName, "node");
  const keys = pod?.spec.tolerations?.map(({ key, effect }) => `${key?.slice("node.kubernetes.io/".length)}:${effect}`);
  assert.deepEqual(keys, [
    "not-ready:NoExecute",
    "unreachable:NoExecute",
    "disk-pressure:NoSchedule",
    "memory-pressure:NoSchedule",
    "pid-pressure:NoSchedule",
    "unschedulable:NoSchedule",
  ]);
  const { items } = await made.api.list(CONTROLLER_REVISIONS, {}, made.signal);
  const hash = items[0]?.metadata.labels?.["controller-revision-hash"];
  assert.equal(items[0]?.metadata.labels?.["controller.kubernetes.io/hash"], undefined);
  assert.equal(items[0]?.metadata.name, `d-${hash}`);
  assert.equal(pod?.metadata.labels?.["controller-revision-hash"], hash);
  const { status } = await get();
  assert.deepEqual(
    [status?.desiredNumberScheduled, status?.currentNumberScheduled, status?.numberReady, status?.numberAvailable],
    [1, 1, 1, 1],
  );
  assert.deepEqual([status?.updatedNumberScheduled, status?.observedGeneration], [1, 1]);
});

test("a node that does not match, or has a taint, gets none", async (t) => {
  const template = {
    metadata: { labels },
    spec: { containers: [{ name: "c", image: "x" }], nodeSelector: { disk: "ssd" } },
  };
  const { made, patchNode, get } = await bench(t, { template });
  assert.equal((await podsOf(made)).length, 0);
  await patchNode({ metadata: { labels: { disk: "ssd" } } });
  await runPods(made);
  assert.equal((await podsOf(made)).length, 1);
  await patchNode({ spec: { taints: [{ key: "example.com/x", effect: "NoSchedule" }] } });
  await runPods(made);
  assert.equal((await podsOf(made)).length, 1);
  assert.deepEqual([(await get()).status?.desiredNumberScheduled, (await get()).status?.numberMisscheduled], [0, 1]);
  await patchNode({ spec: { taints: [{ key: "example.com/x", effect: "NoExecute" }] } });
  await runPods(made);
  assert.equal((await podsOf(made)).length, 0);
});

test("a rolling update deletes the old pod before it creates the new one", async (t) => {
  const { made, setImage, images } = await bench(t);
  await runPods(made);
  await setImage("x:2");
  assert.deepEqual(await images(), ["x:1"]);
  assert.ok((await podsOf(made))[0]?.metadata.deletionTimestamp);
  await runPods(made);
  assert.deepEqual(await images(), ["x:2"]);
});

test("with maxSurge the old pod stays until the new one is available", async (t) => {
  const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
  const { made, setImage, images } = await bench(t, { updateStrategy: { type: "RollingUpdate", rollingUpdate } });
  await runPods(made);
  await setImage("x:2");
  assert.deepEqual(await images(), ["x:1", "x:2"]);
  assert.ok((await podsOf(made)).every(({ metadata }) => metadata.deletionTimestamp === undefined));
  await runPods(made);
  assert.deepEqual(await images(), ["x:2"]);
});

test("OnDelete leaves the pod to the user", async (t) => {
  const { made, setImage, images, get } = await bench(t, { updateStrategy: { type: "OnDelete" } });
  await runPods(made);
  await setImage("x:2");
  await runPods(made);
  assert.deepEqual(await images(), ["x:1"]);
  assert.equal((await get()).status?.updatedNumberScheduled ?? 0, 0);
  const [pod] = await podsOf(made);
  await made.api.delete(PODS, { namespace: "default", name: pod?.metadata.name ?? "" }, made.signal);
  await runPods(made);
  assert.deepEqual(await images(), ["x:2"]);
});

test("a pod that fails again and again is replaced at growing intervals", async (t) => {
  const { made } = await bench(t);
  await runPods(made);
  const fail = async () => {
    const [pod] = await podsOf(made);
    assert.ok(pod);
    await setPodStatus(made, pod, { phase: "Failed" });
    return pod.metadata.uid;
  };
  const first = await fail();
  await runPods(made);
  assert.notEqual((await podsOf(made))[0]?.metadata.uid, first);
  const second = await fail();
  await runPods(made);
  assert.equal((await podsOf(made))[0]?.metadata.uid, second);
  await made.advance(1000);
  await runPods(made);
  assert.notEqual((await podsOf(made))[0]?.metadata.uid, second);
  const events = (await made.api.list(EVENTS, {}, made.signal)).items.filter(
    ({ reason }) => reason === "FailedDaemonPod",
  );
  assert.match(events[0]?.message ?? "", /^Found failed daemon pod default\/d-\w+ on node node, will try to kill it$/);
});

test("nothing is written while nothing changes", async (t) => {
  const { made } = await bench(t);
  await runPods(made);
  assert.equal(await made.writesWithin(3_600_000), 0);
});
