import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../../test/support/local-api.ts";
import { apiRequests } from "../../../test/support/local-api-requests.ts";
import { BodyTooLarge, bareRequest } from "../../adapters/net/http-route.ts";
import { FakeClock } from "../../lib/clock.ts";
import type {
  SelfSubjectRulesReview,
  SubjectAccessReview,
  TokenRequest,
  TokenReview,
} from "../../model/generated/types.ts";

const AUTHENTICATION = "/apis/authentication.k8s.io/v1";
const AUTHORIZATION = "/apis/authorization.k8s.io/v1";

async function bench(t: TestContext) {
  const server = await testApiServer(new FakeClock());
  t.after(() => server.close());
  return apiRequests(server);
}

test("a review of a token says whose it is, and for whom", async (t) => {
  const ask = await bench(t);
  const path = "/api/v1/namespaces/default/serviceaccounts/default/token";
  const { value } = await ask<TokenRequest>("POST", path, { body: { spec: { audiences: ["vault"] } } });
  const token = value.status?.token;
  const review = async (audiences: readonly string[]) => {
    const body = { spec: { token, audiences } };
    return (await ask<TokenReview>("POST", `${AUTHENTICATION}/tokenreviews`, { body })).value.status;
  };
  const known = await review(["vault", "db"]);
  assert.equal(known?.authenticated, true);
  assert.deepEqual(known?.audiences, ["vault"]);
  assert.equal(known?.user?.username, "system:serviceaccount:default:default");
  assert.deepEqual(await review(["db"]), { user: {}, error: "invalid bearer token" });
});

test("a review of no token is a mistake of who asks", async (t) => {
  const ask = await bench(t);
  for (const body of [{}, { spec: {} }, { spec: { token: "" } }]) {
    const { status, value } = await ask("POST", `${AUTHENTICATION}/tokenreviews`, { body });
    assert.equal(status, 400);
    assert.equal(value.message, "token is required for TokenReview in authentication");
  }
});

const resourceAttributes = { verb: "delete", resource: "pods", namespace: "default" };
for (const { name, spec, allowed } of [
  { name: "an administrator", spec: { user: "root", groups: ["system:masters"] }, allowed: true },
  { name: "somebody with the name of a group", spec: { user: "system:masters", groups: [] }, allowed: false },
  { name: "somebody without groups", spec: { user: "joe" }, allowed: false },
]) {
  test(`${name} ${allowed ? "may" : "may not"} delete a pod, whoever asks`, async (t) => {
    const ask = await bench(t);
    for (const path of ["subjectaccessreviews", "namespaces/default/localsubjectaccessreviews"]) {
      const body = { spec: { ...spec, resourceAttributes } };
      const { value } = await ask<SubjectAccessReview>("POST", `${AUTHORIZATION}/${path}`, { body });
      assert.equal(value.status?.allowed, allowed);
    }
  });
}

test("those who are no administrators may not ask about others, only about themselves", async (t) => {
  const ask = await bench(t);
  const groups = ["system:serviceaccounts"];
  const body = { spec: { token: "x", resourceAttributes: { verb: "create", resource: "selfsubjectreviews" } } };
  for (const path of [`${AUTHENTICATION}/tokenreviews`, `${AUTHORIZATION}/subjectaccessreviews`]) {
    assert.equal((await ask("POST", path, { body, groups })).status, 403);
  }
  const own = `${AUTHORIZATION}/selfsubjectaccessreviews`;
  const { value } = await ask<SubjectAccessReview>("POST", own, { body, groups });
  assert.equal(value.status?.allowed, true);
});

test("the rules of an administrator are everything, those of others what they may ask", async (t) => {
  const ask = await bench(t);
  const rules = async (groups: readonly string[]) => {
    const path = `${AUTHORIZATION}/selfsubjectrulesreviews`;
    const { value } = await ask<SelfSubjectRulesReview>("POST", path, { body: { spec: {} }, groups });
    return value.status?.resourceRules.map(({ resources = [] }) => resources.join(" "));
  };
  const own = ["selfsubjectaccessreviews selfsubjectrulesreviews", "selfsubjectreviews"];
  assert.deepEqual(await rules(["system:masters"]), ["*", ...own]);
  assert.deepEqual(await rules([]), own);
});

for (const { name, type, bytes, want } of [
  { name: "a large body", type: "application/json", bytes: 17 * 1024, want: 413 },
  { name: "YAML", type: "application/yaml", bytes: 10, want: 415 },
  { name: "a small body", type: "application/json", bytes: 10, want: 201 },
]) {
  test(`${name} of a pod that asks about itself is answered with ${want}`, async (t) => {
    const server = await testApiServer(new FakeClock());
    t.after(() => server.close());
    const text = JSON.stringify({ spec: { resourceAttributes: { name: "x".repeat(bytes) } } });
    const readBody = async (limit: number): Promise<Buffer> => {
      if (text.length > limit) throw new BodyTooLarge("TooLarge", "over the limit");
      return Buffer.from(text);
    };
    const path = `${AUTHORIZATION}/selfsubjectaccessreviews`;
    const request = bareRequest("POST", path, { headers: { "content-type": type }, readBody });
    const asked = async (groups: readonly string[]) => (await server.handle(request, { name: "x", groups })).status;
    assert.equal(await asked(["system:serviceaccounts"]), want);
    assert.equal(await asked(["system:masters"]), 201);
  });
}
