import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { apiRequests, type StatusBody } from "../../../test/support/local-api-requests.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { Deployment, Pod, Scale } from "../../model/generated/types.ts";

const PODS = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
const SCALE = `${DEPLOYMENTS}/web/scale`;
const merge = { "content-type": "application/merge-patch+json" };

async function bench(t: TestContext) {
  const server = await testApiServer(new FakeClock());
  t.after(() => server.close());
  const ask = apiRequests(server);
  const spec = { containers: [{ name: "c", image: "x" }] };
  const addPod = (more: object = {}) =>
    ask<Pod>("POST", PODS, { body: { metadata: { name: "p" }, spec: { ...spec, ...more } } });
  const getPod = async () => (await ask<Pod>("GET", `${PODS}/p`)).value;
  const addDeployment = () => {
    const template = { metadata: { labels: { app: "web" } }, spec };
    const body = {
      metadata: { name: "web" },
      spec: { replicas: 2, selector: { matchLabels: { app: "web" } }, template },
    };
    return ask<Deployment>("POST", DEPLOYMENTS, { body });
  };
  const replicas = async () => (await ask<Deployment>("GET", `${DEPLOYMENTS}/web`)).value.spec?.replicas;
  return { ask, addPod, getPod, addDeployment, replicas };
}

test("a scale shows the copies of a workload, and changes nothing but their number", async (t) => {
  const { ask, addDeployment, replicas } = await bench(t);
  const { value: made } = await addDeployment();
  const { value: shown } = await ask<Scale>("GET", SCALE);
  assert.deepEqual(shown.spec, { replicas: 2 });
  assert.deepEqual(shown.status, { replicas: 0, selector: "app=web" });
  const changed = await ask<Scale>("PUT", SCALE, { body: { ...shown, spec: { replicas: 5 } } });
  assert.deepEqual([changed.status, changed.value.spec], [200, { replicas: 5 }]);
  const { value: now } = await ask<Deployment>("GET", `${DEPLOYMENTS}/web`);
  assert.deepEqual(now.spec, { ...made.spec, replicas: 5 });
  const patched = await ask<Scale>("PATCH", SCALE, { body: { spec: { replicas: 1 } }, headers: merge });
  assert.equal(patched.status, 200);
  assert.equal(await replicas(), 1);
  const json = { "content-type": "application/json-patch+json; charset=utf-8" };
  const steps = [{ op: "replace", path: "/spec/replicas", value: 0 }];
  assert.equal((await ask("PATCH", SCALE, { body: steps, headers: json })).status, 200);
  assert.equal(await replicas(), 0);
});

const scales = [
  { name: "no name, such as an empty body", body: {}, status: 400 },
  { name: "the name of another object", body: { metadata: { name: "other" } }, status: 400 },
  { name: "another version", body: { metadata: { name: "web", resourceVersion: "1" } }, status: 409 },
  { name: "a number below zero", body: { metadata: { name: "web" }, spec: { replicas: -1 } }, status: 422 },
  { name: "a text for a number", body: { metadata: { name: "web" }, spec: { replicas: "many" } }, status: 400 },
];
for (const { name, body, status } of scales) {
  test(`a scale with ${name} is refused, and no copy is stopped`, async (t) => {
    const { ask, addDeployment, replicas } = await bench(t);
    await addDeployment();
    assert.equal((await ask("PUT", SCALE, { body })).status, status);
    assert.equal(await replicas(), 2);
  });
}

test("a scale is tried without being stored; other methods, forms and names are refused", async (t) => {
  const { ask, addDeployment, replicas } = await bench(t);
  await addDeployment();
  const body = { metadata: { name: "web" }, spec: { replicas: 9 } };
  assert.deepEqual((await ask<Scale>("PUT", `${SCALE}?dryRun=All`, { body })).value.spec, { replicas: 9 });
  assert.equal(await replicas(), 2);
  assert.equal((await ask("DELETE", SCALE)).status, 405);
  assert.equal((await ask("PATCH", SCALE, { body, headers: { "content-type": "application/json" } })).status, 415);
  assert.equal((await ask("PUT", `${DEPLOYMENTS}/other/scale`, { body })).status, 404);
});

test("an eviction deletes its pod with the grace that it asks for", async (t) => {
  const { ask, addPod, getPod } = await bench(t);
  await addPod({ nodeName: "n" });
  const evict = (body: object) => ask(`POST`, `${PODS}/p/eviction`, { body });
  assert.equal((await evict({ metadata: { name: "p" }, deleteOptions: { dryRun: ["All"] } })).status, 201);
  assert.equal((await getPod()).metadata.deletionTimestamp, undefined);
  const { status } = await evict({ metadata: { name: "p" }, deleteOptions: { gracePeriodSeconds: 7 } });
  assert.equal(status, 201);
  assert.equal((await getPod()).metadata.deletionGracePeriodSeconds, 7);
});

test("an eviction of another pod, of none, or in another form deletes nothing", async (t) => {
  const { ask, addPod, getPod } = await bench(t);
  await addPod({ nodeName: "n" });
  assert.equal((await ask("POST", `${PODS}/p/eviction`, { body: { metadata: { name: "q" } } })).status, 400);
  assert.equal((await ask("POST", `${PODS}/p/eviction`, { body: { metadata: 5 } })).status, 400);
  assert.equal((await ask("POST", `${PODS}/q/eviction`, { body: {} })).status, 404);
  assert.equal((await ask("GET", `${PODS}/p/eviction`)).status, 405);
  const stale = { metadata: { name: "p" }, deleteOptions: { preconditions: { uid: "other" } } };
  assert.equal((await ask("POST", `${PODS}/p/eviction`, { body: stale })).status, 409);
  assert.equal((await getPod()).metadata.deletionTimestamp, undefined);
});

test("a pod is given to a node once", async (t) => {
  const { ask, addPod, getPod } = await bench(t);
  await addPod();
  const bind = (name: string, more: object = {}) =>
    ask<StatusBody>("POST", `${PODS}/p/binding`, { body: { target: { kind: "Node", name }, ...more } });
  assert.equal((await bind("")).status, 422);
  assert.equal((await bind("n", { metadata: { uid: "other" } })).status, 409);
  assert.equal((await bind("n", { target: 5 })).status, 400);
  assert.equal((await getPod()).spec.nodeName, undefined);
  assert.equal((await bind("n")).status, 201);
  const { spec, status } = await getPod();
  assert.equal(spec.nodeName, "n");
  assert.deepEqual(
    status?.conditions?.map(({ type, status: is }) => `${type}=${is}`),
    ["PodScheduled=True"],
  );
  const again = await bind("m");
  assert.deepEqual([again.status, /already assigned to node "n"/.test(again.value.message ?? "")], [409, true]);
});

test("a pod that waits at a gate, or is being deleted, is given to no node", async (t) => {
  const { ask, addPod } = await bench(t);
  await addPod({ schedulingGates: [{ name: "example.com/gate" }] });
  const bind = () => ask("POST", `${PODS}/p/binding`, { body: { target: { name: "n" } } });
  assert.match((await bind()).value.message ?? "", /non-empty .spec.schedulingGates/);
  await ask("PATCH", `${PODS}/p`, { body: { metadata: { finalizers: ["example.com/f"] } }, headers: merge });
  await ask("DELETE", `${PODS}/p`);
  assert.match((await bind()).value.message ?? "", /is being deleted/);
});
