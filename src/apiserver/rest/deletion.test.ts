import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { type AskedWith, apiRequests } from "../../../test/support/local-api-requests.ts";
import { bareRequest } from "../../adapters/net/http-route.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { Deployment, Pod } from "../../model/generated/types.ts";

const PODS = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";
const spec = { containers: [{ name: "c", image: "x" }] };

async function bench(t: TestContext) {
  const clock = new FakeClock();
  const server = await testApiServer(clock);
  t.after(() => server.close());
  const ask = apiRequests(server);
  const addPod = (more: object = {}, metadata: object = {}) =>
    ask<Pod>("POST", PODS, {
      body: { metadata: { name: "p", ...metadata }, spec: { ...spec, nodeName: "n", ...more } },
    });
  const pod = () => ask<Pod>("GET", `${PODS}/p`);
  const remove = (query = "", asked: AskedWith = {}) => ask("DELETE", `${PODS}/p${query}`, asked);
  const grace = async () => {
    const { deletionTimestamp, deletionGracePeriodSeconds } = (await pod()).value.metadata;
    return [deletionTimestamp?.slice(14, 19), deletionGracePeriodSeconds];
  };
  return { clock, ask, addPod, pod, remove, grace };
}

for (const { query, want } of [
  { query: "", want: undefined },
  { query: "?propagationPolicy=Background", want: undefined },
  { query: "?propagationPolicy=Foreground", want: ["foregroundDeletion"] },
  { query: "?propagationPolicy=Orphan", want: ["orphan"] },
  { query: "?orphanDependents=true", want: ["orphan"] },
  { query: "?orphanDependents=false", want: undefined },
]) {
  test(`a deletion with ${query || "no option"} leaves the dependents ${want?.[0] ?? "to be deleted"}`, async (t) => {
    const { ask } = await bench(t);
    const template = { metadata: { labels: { a: "b" } }, spec };
    const body = { metadata: { name: "d" }, spec: { selector: { matchLabels: { a: "b" } }, template } };
    await ask("POST", DEPLOYMENTS, { body });
    assert.equal((await ask("DELETE", `${DEPLOYMENTS}/d${query}`)).status, 200);
    const { status, value } = await ask<Deployment>("GET", `${DEPLOYMENTS}/d`);
    assert.deepEqual([status, value.metadata.finalizers], want === undefined ? [404, undefined] : [200, want]);
    // Its spec did not change, and yet who watches the generation learns of it.
    if (want !== undefined) assert.equal(value.metadata.generation, 2);
  });
}

test("a policy that nobody knows, or two that contradict each other, delete nothing", async (t) => {
  const { addPod, pod, remove } = await bench(t);
  await addPod();
  assert.equal((await remove("?propagationPolicy=Sometimes")).status, 422);
  assert.equal((await remove("?propagationPolicy=Foreground&orphanDependents=true")).status, 422);
  assert.equal((await pod()).value.metadata.deletionTimestamp, undefined);
});

test("a grace period without an end ends with the calendar, and may become shorter", async (t) => {
  const { clock, addPod, pod, remove } = await bench(t);
  await addPod({ terminationGracePeriodSeconds: Number.MAX_SAFE_INTEGER });
  assert.equal((await remove()).status, 200);
  assert.equal((await pod()).value.metadata.deletionTimestamp, "9999-12-31T23:59:59Z");
  assert.equal((await remove("?gracePeriodSeconds=30")).status, 200);
  const { deletionTimestamp, deletionGracePeriodSeconds } = (await pod()).value.metadata;
  assert.deepEqual([Date.parse(deletionTimestamp ?? "") - clock.now().wall, deletionGracePeriodSeconds], [30_000, 30]);
});

test("a pod is marked with its grace period, of the query or of the body", async (t) => {
  const { addPod, remove, grace } = await bench(t);
  await addPod();
  await remove("?dryRun=All");
  assert.deepEqual(await grace(), [undefined, undefined]);
  await remove();
  assert.deepEqual(await grace(), ["00:30", 30]);
  await remove("", { body: { gracePeriodSeconds: 20 } });
  assert.deepEqual(await grace(), ["00:20", 20]);
});

test("a grace period becomes shorter and never longer; when it is over, a second is left", async (t) => {
  const { clock, addPod, remove, grace } = await bench(t);
  await addPod();
  await remove("?gracePeriodSeconds=40");
  await clock.advance(15_000);
  for (const query of ["?gracePeriodSeconds=50", "?gracePeriodSeconds=40", ""]) {
    await remove(query);
    assert.deepEqual(await grace(), ["00:40", 40], query);
  }
  await remove("?gracePeriodSeconds=15");
  assert.deepEqual(await grace(), ["00:15", 15]);
  await remove("?gracePeriodSeconds=5");
  assert.deepEqual(await grace(), ["00:15", 1]);
});

test("a negative grace period is one second, and one of zero removes the pod", async (t) => {
  const { addPod, pod, remove, grace } = await bench(t);
  await addPod();
  await remove("?gracePeriodSeconds=-1");
  assert.deepEqual(await grace(), ["00:01", 1]);
  await remove("?gracePeriodSeconds=0");
  assert.equal((await pod()).status, 404);
});

test("a pod that runs nowhere, or has ended, has nothing to finish", async (t) => {
  const { ask, addPod, pod, remove } = await bench(t);
  await addPod({ nodeName: undefined });
  await remove("?gracePeriodSeconds=30");
  assert.equal((await pod()).status, 404);
  await addPod();
  const headers = { "content-type": "application/merge-patch+json" };
  await ask("PATCH", `${PODS}/p/status`, { body: { status: { phase: "Succeeded" } }, headers });
  await remove("?gracePeriodSeconds=30");
  assert.equal((await pod()).status, 404);
});

test("a pod with a finalizer waits for it, and goes when it is taken away", async (t) => {
  const { ask, addPod, pod, remove } = await bench(t);
  await addPod({}, { finalizers: ["example.com/f"] });
  await remove("?gracePeriodSeconds=0");
  assert.deepEqual((await pod()).value.metadata.finalizers, ["example.com/f"]);
  const headers = { "content-type": "application/merge-patch+json" };
  const added = { metadata: { finalizers: ["example.com/f", "example.com/g"] } };
  assert.equal((await ask("PATCH", `${PODS}/p`, { body: added, headers })).status, 422, "no new one while it goes");
  await ask("PATCH", `${PODS}/p`, { body: { metadata: { finalizers: null } }, headers });
  assert.equal((await pod()).status, 404);
});

test("preconditions of a deletion hold", async (t) => {
  const { addPod, pod, remove } = await bench(t);
  const { value } = await addPod();
  const { uid, resourceVersion } = value.metadata;
  assert.equal((await remove("", { body: { preconditions: { uid: "other" } } })).status, 409);
  assert.equal((await remove("", { body: { preconditions: { resourceVersion: "1" } } })).status, 409);
  assert.equal((await remove("", { body: { preconditions: 5 } })).status, 400);
  assert.equal((await pod()).value.metadata.deletionTimestamp, undefined);
  assert.equal((await remove("", { body: { preconditions: { uid, resourceVersion } } })).status, 200);
});

const token = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const GOOD = { v: "meta.k8s.io/v1", rv: 5, start: "default/a\0" };
for (const { name, text } of [
  { name: "no base64 of JSON", text: "%%%" },
  { name: "null", text: token(null) },
  { name: "a number", text: token(5) },
  { name: "without a version of its form", text: token({ ...GOOD, v: undefined }) },
  { name: "without a version", text: token({ ...GOOD, rv: undefined }) },
  { name: "without a place", text: token({ ...GOOD, start: undefined }) },
  { name: "of another form", text: token({ ...GOOD, v: "meta.k8s.io/v2" }) },
  { name: "with version 0", text: token({ ...GOOD, rv: 0 }) },
  { name: "with half a version", text: token({ ...GOOD, rv: 1.5 }) },
  { name: "with a place that has no end", text: token({ ...GOOD, start: "default/a" }) },
]) {
  test(`a continue token that is ${name} is a mistake of the client`, async (t) => {
    const { ask } = await bench(t);
    const { status, value } = await ask("GET", `${PODS}?limit=1&continue=${text}`);
    assert.equal(status, 400);
    assert.match(value.message ?? "", /^invalid continue token: continue key is not valid: /);
  });
}

test("a large collection is deleted in pieces, with turns for others in between", async (t) => {
  const server = await testApiServer(new FakeClock());
  t.after(() => server.close());
  const MAPS = "/api/v1/namespaces/default/configmaps";
  const ask = apiRequests(server);
  for (let index = 0; index < 1000; index++) await ask("POST", MAPS, { body: { metadata: { name: `m-${index}` } } });
  let isOver = false;
  const request = bareRequest("DELETE", `${MAPS}?fieldSelector=metadata.name!=m-7`);
  const deletion = server.handle(request, { name: "tester", groups: ["system:masters"] }).finally(() => {
    isOver = true;
  });
  let turns = 0;
  while (!isOver) {
    turns++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal((await deletion).status, 200);
  assert.ok(turns >= 5, `${turns} turns`);
  const { value } = await ask<{ items: { metadata: { name: string } }[] }>("GET", MAPS);
  assert.deepEqual(
    value.items.map(({ metadata }) => metadata.name),
    ["m-7"],
  );
});
