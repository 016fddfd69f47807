import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { podsOf, runPods } from "../../../test/support/bench-pods.ts";
import { ControllerBench } from "../../../test/support/controllers.ts";
import { DEPLOYMENTS, EVENTS, REPLICA_SETS } from "../../adapters/kubeapi/index.ts";
import type { DeploymentSpec, ReplicaSet } from "../../model/generated/types.ts";
import { garbageCollectorController } from "../garbage/garbage-collector.ts";
import { replicaSetController } from "../replicaset/replica-sets.ts";
import { schedulerController } from "../scheduler/scheduler.ts";
import { deploymentController } from "./deployments.ts";

const labels = { app: "a" };

async function bench(t: TestContext, spec: Partial<DeploymentSpec> = {}) {
  const made = await ControllerBench.start(
    deploymentController,
    replicaSetController,
    garbageCollectorController,
    schedulerController,
  );
  t.after(() => made.close());
  await made.addNode();
  const { api, signal } = made;
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "x:1" }] } };
  const object = {
    metadata: { name: "a" },
    spec: { replicas: 3, selector: { matchLabels: labels }, template, ...spec },
  };
  await api.create(DEPLOYMENTS, { namespace: "default", object }, signal);
  await made.settle();
  const get = () => api.get(DEPLOYMENTS, { namespace: "default", name: "a" }, signal);
  const patch = async (body: object) => {
    await api.patch(DEPLOYMENTS, { namespace: "default", name: "a", type: "strategic", body }, signal);
    await made.settle();
  };
  const setImage = (image: string) => patch({ spec: { template: { spec: { containers: [{ name: "c", image }] } } } });
  const sets = async () => {
    const { items } = await api.list(REPLICA_SETS, { namespace: "default" }, signal);
    const revision = ({ metadata }: ReplicaSet) => Number(metadata.annotations?.["deployment.kubernetes.io/revision"]);
    return [...items]
      .sort((a, b) => revision(a) - revision(b))
      .map((set) => ({
        revision: revision(set),
        image: set.spec.template?.spec?.containers[0]?.image,
        replicas: set.spec.replicas,
      }));
  };
  const condition = async (type: string) => (await get()).status?.conditions?.find((one) => one.type === type);
  return { made, get, patch, setImage, sets, condition };
}

test("a new deployment gets a set with the hash of its template, and becomes complete", async (t) => {
  const { made, get, sets, condition } = await bench(t);
  assert.deepEqual(await sets(), [{ revision: 1, image: "x:1", replicas: 3 }]);
  assert.equal((await condition("Progressing"))?.reason, "ReplicaSetUpdated");
  assert.equal((await condition("Available"))?.status, "False");
  await runPods(made);
  const [set] = (await made.api.list(REPLICA_SETS, {}, made.signal)).items;
  const hash = set?.metadata.labels?.["pod-template-hash"];
  assert.equal(set?.metadata.name, `a-${hash}`);
  assert.equal(set?.spec.selector.matchLabels?.["pod-template-hash"], hash);
  const { metadata, status } = await get();
  assert.equal(metadata.annotations?.["deployment.kubernetes.io/revision"], "1");
  assert.deepEqual([status?.replicas, status?.updatedReplicas, status?.availableReplicas], [3, 3, 3]);
  assert.equal(status?.observedGeneration, 1);
  assert.deepEqual(
    [(await condition("Progressing"))?.reason, (await condition("Progressing"))?.message],
    ["NewReplicaSetAvailable", `ReplicaSet "a-${hash}" has successfully progressed.`],
  );
  const events = (await made.api.list(EVENTS, {}, made.signal)).items.filter(
    ({ reason }) => reason === "ScalingReplicaSet",
  );
  assert.deepEqual(
    events.map(({ message }) => message),
    [`Scaled up replica set a-${hash} from 0 to 3`],
  );
});

test("a rolling update keeps within surge and unavailability, and keeps the history", async (t) => {
  const { made, setImage, sets, get } = await bench(t, {
    strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
  });
  await runPods(made);
  await setImage("x:2");
  assert.deepEqual(await sets(), [
    { revision: 1, image: "x:1", replicas: 3 },
    { revision: 2, image: "x:2", replicas: 1 },
  ]);
  assert.equal((await podsOf(made)).length, 4);
  await runPods(made);
  assert.deepEqual(await sets(), [
    { revision: 1, image: "x:1", replicas: 0 },
    { revision: 2, image: "x:2", replicas: 3 },
  ]);
  assert.equal((await get()).metadata.annotations?.["deployment.kubernetes.io/revision"], "2");
});

test("going back to an old template is a new revision of its set", async (t) => {
  const { made, setImage, sets } = await bench(t);
  await runPods(made);
  await setImage("x:2");
  await runPods(made);
  await setImage("x:1");
  await runPods(made);
  assert.deepEqual(await sets(), [
    { revision: 2, image: "x:2", replicas: 0 },
    { revision: 3, image: "x:1", replicas: 3 },
  ]);
  const found = (await made.api.list(REPLICA_SETS, {}, made.signal)).items.map(
    ({ metadata }) => metadata.annotations?.["deployment.kubernetes.io/revision-history"],
  );
  assert.deepEqual(found.filter(Boolean), ["1"]);
});

test("old sets beyond the limit are deleted", async (t) => {
  const { made, setImage, sets } = await bench(t, { revisionHistoryLimit: 1 });
  for (const image of ["x:2", "x:3", "x:4"]) {
    await runPods(made);
    await setImage(image);
  }
  await runPods(made);
  assert.deepEqual(
    (await sets()).map(({ image }) => image),
    ["x:3", "x:4"],
  );
});

test("Recreate ends all old pods before new ones begin", async (t) => {
  const { made, setImage, sets } = await bench(t, { strategy: { type: "Recreate" } });
  await runPods(made);
  await setImage("x:2");
  assert.deepEqual(await sets(), [{ revision: 1, image: "x:1", replicas: 0 }]);
  assert.equal((await podsOf(made)).length, 3);
  await runPods(made);
  assert.deepEqual(
    (await sets()).map(({ replicas }) => replicas),
    [0, 3],
  );
});

test("in the middle of a rollout, another strategy and number at once do not stop it", async (t) => {
  const { made, patch, setImage, sets } = await bench(t);
  await runPods(made);
  await setImage("x:2");
  await patch({ spec: { replicas: 4, strategy: { $retainKeys: ["type"], type: "Recreate" } } });
  for (let turn = 0; turn < 4; turn++) await runPods(made);
  assert.deepEqual(await sets(), [
    { revision: 1, image: "x:1", replicas: 0 },
    { revision: 2, image: "x:2", replicas: 4 },
  ]);
});

test("a set that somebody else gave the wanted size first is rolled out, too", async (t) => {
  const { made, patch, setImage, sets } = await bench(t);
  await runPods(made);
  const [set] = (await made.api.list(REPLICA_SETS, {}, made.signal)).items;
  const at = { namespace: "default", name: set?.metadata.name ?? "", type: "merge" } as const;
  const annotations = { "deployment.kubernetes.io/desired-replicas": "7" };
  await made.api.patch(REPLICA_SETS, { ...at, body: { metadata: { annotations } } }, made.signal);
  await patch({ spec: { minReadySeconds: 0 } });
  await setImage("x:2");
  for (let turn = 0; turn < 4; turn++) await runPods(made);
  assert.deepEqual(await sets(), [
    { revision: 1, image: "x:1", replicas: 0 },
    { revision: 2, image: "x:2", replicas: 3 },
  ]);
});

test("a paused deployment scales and does not roll out", async (t) => {
  const { made, patch, setImage, sets, condition } = await bench(t);
  await runPods(made);
  await patch({ spec: { paused: true } });
  assert.equal((await condition("Progressing"))?.reason, "DeploymentPaused");
  await setImage("x:2");
  await patch({ spec: { replicas: 5 } });
  assert.deepEqual(await sets(), [{ revision: 1, image: "x:1", replicas: 5 }]);
  await patch({ spec: { paused: false } });
  await runPods(made);
  assert.deepEqual(
    (await sets()).map(({ replicas }) => replicas),
    [0, 5],
  );
});

test("a rollout without progress times out", async (t) => {
  const { made, condition } = await bench(t, { progressDeadlineSeconds: 60 });
  await made.advance(62_000);
  const found = await condition("Progressing");
  assert.deepEqual([found?.status, found?.reason], ["False", "ProgressDeadlineExceeded"]);
  assert.match(found?.message ?? "", /^ReplicaSet "a-\w+" has timed out progressing\.$/);
  await runPods(made);
  assert.equal((await condition("Progressing"))?.reason, "NewReplicaSetAvailable");
});

test("a set that is created cannot collide with another of its name", async (t) => {
  const { made, setImage, sets, get } = await bench(t);
  await runPods(made);
  const [first] = (await made.api.list(REPLICA_SETS, {}, made.signal)).items;
  await setImage("x:2");
  await runPods(made);
  const second = (await made.api.list(REPLICA_SETS, {}, made.signal)).items.find(
    ({ metadata }) => metadata.name !== first?.metadata.name,
  );
  // Somebody changes the template of the second set under its name.
  const name = second?.metadata.name ?? "";
  const containers = [{ name: "c", image: "x:other" }];
  const body = { spec: { template: { spec: { containers } } } };
  await made.api.patch(REPLICA_SETS, { namespace: "default", name, type: "strategic", body }, made.signal);
  await made.settle();
  await made.advance(1000);
  await runPods(made);
  assert.equal((await get()).status?.collisionCount, 1);
  assert.equal((await sets()).at(-1)?.image, "x:2");
});

test("nothing is written while nothing changes", async (t) => {
  const { made } = await bench(t);
  await runPods(made);
  await made.advance(1000);
  assert.equal(await made.writesWithin(3_600_000), 0);
});
