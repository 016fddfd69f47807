import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { apiRequests } from "../../../test/support/local-api-requests.ts";
import { FakeClock } from "../../lib/clock.ts";
import type { Pod, TokenRequest } from "../../model/generated/types.ts";

const ROOT = "/api/v1/namespaces/default";
const spec = { containers: [{ name: "c", image: "x" }] };

async function bench(t: TestContext) {
  const clock = new FakeClock();
  const server = await testApiServer(clock);
  t.after(() => server.close());
  const ask = apiRequests(server);
  await ask("POST", `${ROOT}/serviceaccounts`, { body: { metadata: { name: "robot" } } });
  const { value: pod } = await ask<Pod>("POST", `${ROOT}/pods`, { body: { metadata: { name: "web" }, spec } });
  const request = <T = TokenRequest>(account: string, given: object) =>
    ask<T>("POST", `${ROOT}/serviceaccounts/${account}/token`, { body: { spec: given } });
  return { clock, server, ask, pod, request };
}

test("a token is for the API and an hour unless others are wished for, and says so", async (t) => {
  const { clock, server, request } = await bench(t);
  const { status, value } = await request("robot", {});
  assert.equal(status, 201);
  assert.deepEqual(value.spec, {
    audiences: ["https://kubernetes.default.svc.cluster.local"],
    expirationSeconds: 3600,
  });
  assert.equal(value.status?.expirationTimestamp, "2026-01-01T01:00:00Z");
  assert.equal(server.reviewToken(value.status?.token ?? "")?.name, "system:serviceaccount:default:robot");
  await clock.advance(3_600_000);
  assert.equal(server.reviewToken(value.status?.token ?? ""), undefined);
});

for (const { seconds, status, says = "" } of [
  { seconds: 599, status: 422, says: "may not specify a duration less than 10 minutes" },
  { seconds: 600, status: 201 },
  { seconds: 2 ** 32, status: 201 },
  { seconds: 2 ** 32 + 1, status: 422, says: "may not specify a duration larger than 2^32 seconds" },
]) {
  test(`a token for ${seconds} seconds is ${status === 201 ? "issued" : "refused"}`, async (t) => {
    const { request } = await bench(t);
    const answer = await request<{ message?: string }>("robot", { expirationSeconds: seconds });
    assert.equal(answer.status, status);
    assert.ok((answer.value.message ?? "").includes(says), answer.value.message);
  });
}

test("a token of a pod ends with the pod, also when the request does not name its UID", async (t) => {
  const { server, ask, pod, request } = await bench(t);
  for (const more of [{}, { uid: pod.metadata.uid }]) {
    const { status, value } = await request("default", { boundObjectRef: { kind: "Pod", name: "web", ...more } });
    assert.equal(status, 201);
    const token = value.status?.token ?? "";
    const extra = server.reviewToken(token)?.extra;
    assert.deepEqual(extra?.["authentication.kubernetes.io/pod-uid"], [pod.metadata.uid]);
  }
  const { value } = await request("default", { boundObjectRef: { kind: "Pod", name: "web" } });
  await ask("DELETE", `${ROOT}/pods/web?gracePeriodSeconds=0`);
  assert.equal(server.reviewToken(value.status?.token ?? ""), undefined);
});

const refusals = [
  { name: "a pod of another account", account: "robot", bound: { kind: "Pod", name: "web" }, status: 400 },
  { name: "a pod that is gone", account: "default", bound: { kind: "Pod", name: "other" }, status: 404 },
  { name: "a pod that was made anew", account: "default", bound: { kind: "Pod", name: "web", uid: "u" }, status: 409 },
  { name: "another kind", account: "default", bound: { kind: "Node", name: "web" }, status: 400 },
];
for (const { name, account, bound, status } of refusals) {
  test(`no token is bound to ${name}`, async (t) => {
    const { request } = await bench(t);
    assert.equal((await request(account, { boundObjectRef: bound })).status, status);
  });
}

test("there is no token of an account that is not there, nor for a body of another form", async (t) => {
  const { ask, request } = await bench(t);
  assert.equal((await request("nobody", {})).status, 404);
  assert.equal((await request("robot", { expirationSeconds: "soon" })).status, 400);
  assert.equal((await ask("GET", `${ROOT}/serviceaccounts/robot/token`)).status, 405);
});
