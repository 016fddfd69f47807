import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { podsOf, runPods, setPodStatus } from "../../../test/support/bench-pods.ts";
import { ControllerBench } from "../../../test/support/controllers.ts";
import {
  CONTROLLER_REVISIONS,
  EVENTS,
  PERSISTENT_VOLUME_CLAIMS,
  PODS,
  STATEFUL_SETS,
} from "../../adapters/kubeapi/index.ts";
import type { StatefulSetSpec } from "../../model/generated/types.ts";
import { garbageCollectorController } from "../garbage/garbage-collector.ts";
import { schedulerController } from "../scheduler/scheduler.ts";
import { statefulSetController } from "./stateful-sets.ts";

const labels = { app: "a" };
const claimTemplate = {
  metadata: { name: "data" },
  spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
};

async function bench(t: TestContext, spec: Partial<StatefulSetSpec> = {}) {
  const made = await ControllerBench.start(statefulSetController, garbageCollectorController, schedulerController);
  t.after(() => made.close());
  await made.addNode();
  const { api, signal } = made;
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "x:1" }] } };
  const full = { replicas: 3, serviceName: "svc", selector: { matchLabels: labels }, template, ...spec };
  await api.create(STATEFUL_SETS, { namespace: "default", object: { metadata: { name: "web" }, spec: full } }, signal);
  await made.settle();
  const get = () => api.get(STATEFUL_SETS, { namespace: "default", name: "web" }, signal);
  const patch = async (body: object) => {
    await api.patch(STATEFUL_SETS, { namespace: "default", name: "web", type: "strategic", body }, signal);
    await made.settle();
  };
  const setImage = (image: string) => patch({ spec: { template: { spec: { containers: [{ name: "c", image }] } } } });
  const names = async () => (await podsOf(made)).map(({ metadata }) => metadata.name);
  const images = async () => (await podsOf(made)).map(({ spec: { containers } }) => containers[0]?.image);
  const claims = async () =>
    (await api.list(PERSISTENT_VOLUME_CLAIMS, { namespace: "default" }, signal)).items.map(
      ({ metadata }) => metadata.name,
    );
  return { made, get, patch, setImage, names, images, claims };
}

test("pods are numbered, and each waits for the one before", async (t) => {
  const { made, names, get } = await bench(t, { volumeClaimTemplates: [claimTemplate] });
  assert.deepEqual(await names(), ["web-0"]);
  await runPods(made, ({ metadata }) => metadata.name === "web-0");
  assert.deepEqual(await names(), ["web-0", "web-1"]);
  await runPods(made);
  assert.deepEqual(await names(), ["web-0", "web-1", "web-2"]);
  const [first] = await podsOf(made);
  const { status } = await get();
  assert.deepEqual(
    { ...first?.metadata.labels },
    {
      ...labels,
      "apps.kubernetes.io/pod-index": "0",
      "controller-revision-hash": status?.updateRevision,
      "statefulset.kubernetes.io/pod-name": "web-0",
    },
  );
  assert.equal(first?.metadata.generateName, "web-");
  assert.deepEqual([first?.spec.hostname, first?.spec.subdomain], ["web-0", "svc"]);
  assert.equal(first?.spec.volumes?.[0]?.persistentVolumeClaim?.claimName, "data-web-0");
  assert.deepEqual(
    [status?.replicas, status?.readyReplicas, status?.currentReplicas, status?.updatedReplicas],
    [3, 3, 3, 3],
  );
  const events = (await made.api.list(EVENTS, {}, made.signal)).items.map(({ message }) => message);
  assert.ok(events.includes("Create Pod web-0 in StatefulSet web successful"));
  assert.ok(events.includes("Create Claim data-web-0 Pod web-0 in StatefulSet web success"));
});

test("Parallel creates and deletes all at once", async (t) => {
  const { made, names, patch } = await bench(t, { podManagementPolicy: "Parallel", ordinals: { start: 5 } });
  assert.deepEqual(await names(), ["web-5", "web-6", "web-7"]);
  await patch({ spec: { replicas: 1 } });
  const living = (await podsOf(made)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  assert.deepEqual(
    living.map(({ metadata }) => metadata.name),
    ["web-5"],
  );
});

test("pods go from the highest on, and claims stay", async (t) => {
  const { made, names, patch, claims } = await bench(t, { volumeClaimTemplates: [claimTemplate] });
  await runPods(made);
  await patch({ spec: { replicas: 1 } });
  const deleting = (await podsOf(made)).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
  assert.deepEqual(
    deleting.map(({ metadata }) => metadata.name),
    ["web-2"],
  );
  await runPods(made);
  assert.deepEqual(await names(), ["web-0"]);
  assert.deepEqual(await claims(), ["data-web-0", "data-web-1", "data-web-2"]);
});

test("claims go with pods and with the set if the policy says so", async (t) => {
  const { made, patch, claims, names } = await bench(t, {
    volumeClaimTemplates: [claimTemplate],
    persistentVolumeClaimRetentionPolicy: { whenScaled: "Delete", whenDeleted: "Delete" },
  });
  const finish = async () => {
    // Nobody removes the protection of claims here.
    for (const name of await claims()) {
      const body = { metadata: { finalizers: null } };
      const change = { namespace: "default", name: name ?? "", type: "merge", body } as const;
      await made.api.patch(PERSISTENT_VOLUME_CLAIMS, change, made.signal);
    }
    await made.settle();
  };
  await runPods(made);
  await patch({ spec: { replicas: 2 } });
  await runPods(made);
  await finish();
  assert.deepEqual(await claims(), ["data-web-0", "data-web-1"]);
  await patch({ spec: { replicas: 3 } });
  await runPods(made);
  assert.deepEqual(await names(), ["web-0", "web-1", "web-2"]);
  await made.api.delete(STATEFUL_SETS, { namespace: "default", name: "web", propagation: "Background" }, made.signal);
  await runPods(made);
  await finish();
  assert.deepEqual([await claims(), await names()], [[], []]);
});

test("an update replaces pods one by one from the highest on, down to the partition", async (t) => {
  const { made, setImage, images, patch, get } = await bench(t, {
    updateStrategy: { type: "RollingUpdate", rollingUpdate: { partition: 2 } },
  });
  await runPods(made);
  const before = (await get()).status?.currentRevision;
  await setImage("x:2");
  await runPods(made);
  assert.deepEqual(await images(), ["x:1", "x:1", "x:2"]);
  const { status } = await get();
  assert.equal(status?.currentRevision, before);
  assert.notEqual(status?.updateRevision, before);
  assert.deepEqual([status?.currentReplicas, status?.updatedReplicas], [2, 1]);
  // Below the partition a new pod gets the old template.
  await made.api.delete(PODS, { namespace: "default", name: "web-0" }, made.signal);
  await runPods(made);
  assert.deepEqual(await images(), ["x:1", "x:1", "x:2"]);
  await patch({ spec: { updateStrategy: { rollingUpdate: { partition: 0 } } } });
  await runPods(made);
  assert.deepEqual(await images(), ["x:2", "x:2", "x:2"]);
  assert.equal((await get()).status?.currentRevision, status?.updateRevision);
});

test("OnDelete leaves pods to the user", async (t) => {
  const { made, setImage, images } = await bench(t, { replicas: 2, updateStrategy: { type: "OnDelete" } });
  await runPods(made);
  await setImage("x:2");
  await runPods(made);
  assert.deepEqual(await images(), ["x:1", "x:1"]);
  await made.api.delete(PODS, { namespace: "default", name: "web-0" }, made.signal);
  await runPods(made);
  assert.deepEqual(await images(), ["x:2", "x:1"]);
});

test("a pod that has failed is replaced under its name", async (t) => {
  const { made, names } = await bench(t, { replicas: 1 });
  await runPods(made);
  const [first] = await podsOf(made);
  assert.ok(first);
  await setPodStatus(made, first, { phase: "Failed" });
  await runPods(made);
  assert.deepEqual(await names(), ["web-0"]);
  assert.notEqual((await podsOf(made))[0]?.metadata.uid, first.metadata.uid);
});

test("minReadySeconds delays the next pod and the availability", async (t) => {
  const { made, names, get } = await bench(t, { replicas: 2, minReadySeconds: 30 });
  await runPods(made);
  assert.deepEqual(await names(), ["web-0"]);
  await made.advance(30_000);
  assert.deepEqual(await names(), ["web-0", "web-1"]);
  assert.equal((await get()).status?.availableReplicas, 1);
});

test("templates are kept as revisions up to the limit; an old one that comes back is the newest", async (t) => {
  const { made, setImage, images } = await bench(t, { replicas: 1, revisionHistoryLimit: 1 });
  for (const image of ["x:2", "x:3", "x:1", "x:3"]) {
    await runPods(made);
    await setImage(image);
  }
  await runPods(made);
  assert.deepEqual(await images(), ["x:3"]);
  const { items } = await made.api.list(CONTROLLER_REVISIONS, { namespace: "default" }, made.signal);
  assert.deepEqual(items.map(({ revision }) => revision).sort(), [4, 5]);
});

test("nothing is written while nothing changes", async (t) => {
  const { made } = await bench(t);
  await runPods(made);
  assert.equal(await made.writesWithin(3_600_000), 0);
});

test("a pod that the labels match and the name does not is neither adopted nor deleted with the set", async (t) => {
  const { made } = await bench(t, { replicas: 1 });
  const { api, signal } = made;
  const object = { metadata: { name: "loner", labels }, spec: { containers: [{ name: "c", image: "x:1" }] } };
  await api.create(PODS, { namespace: "default", object }, signal);
  await made.settle();
  const loner = () => api.get(PODS, { namespace: "default", name: "loner" }, signal);
  assert.equal((await loner()).metadata.ownerReferences, undefined);
  await api.delete(STATEFUL_SETS, { namespace: "default", name: "web", propagation: "Background" }, signal);
  await made.settle();
  assert.equal((await loner()).metadata.deletionTimestamp, undefined);
});

test("a pod waits for a claim of its name that is being deleted, and comes as soon as that is gone", async (t) => {
  const { made, names, claims } = await bench(t, { replicas: 1, volumeClaimTemplates: [claimTemplate] });
  await runPods(made);
  const at = { namespace: "default", name: "data-web-0" };
  const { metadata } = await made.api.get(PERSISTENT_VOLUME_CLAIMS, at, made.signal);
  await made.api.delete(PERSISTENT_VOLUME_CLAIMS, at, made.signal);
  await made.api.delete(PODS, { namespace: "default", name: "web-0", graceSeconds: 0 }, made.signal);
  await made.settle();
  assert.deepEqual([await names(), await claims()], [[], ["data-web-0"]]);
  const body = { metadata: { finalizers: null } };
  await made.api.patch(PERSISTENT_VOLUME_CLAIMS, { ...at, type: "merge", body }, made.signal);
  await made.settle();
  assert.deepEqual([await names(), await claims()], [["web-0"], ["data-web-0"]]);
  const next = await made.api.get(PERSISTENT_VOLUME_CLAIMS, at, made.signal);
  assert.notEqual(next.metadata.uid, metadata.uid);
});
