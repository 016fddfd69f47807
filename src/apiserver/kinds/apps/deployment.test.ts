import assert from "node:assert/strict";
import { test } from "node:test";
import { testApiServer } from "../../../../test/support/local-api.ts";
import { DEPLOYMENTS } from "../../../adapters/kubeapi/index.ts";
import { FakeClock } from "../../../lib/clock.ts";

for (const { name, subresource, patch, want } of [
  { name: "a change of an annotation counts", patch: { metadata: { annotations: { a: "b" } } }, want: 2 },
  { name: "a change of the spec counts", patch: { spec: { replicas: 3 } }, want: 2 },
  { name: "a change of a label does not count", patch: { metadata: { labels: { a: "b" } } }, want: 1 },
  {
    name: "an annotation that comes with the status does not count",
    subresource: "/status",
    patch: { metadata: { annotations: { "deployment.kubernetes.io/revision": "1" } }, status: { replicas: 1 } },
    want: 1,
  },
]) {
  test(`generation of a Deployment: ${name}`, async (t) => {
    const server = await testApiServer(new FakeClock());
    t.after(() => server.close());
    const api = server.api("user");
    const { signal } = new AbortController();
    const labels = { app: "d" };
    const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "x" }] } };
    const object = { metadata: { name: "d" }, spec: { selector: { matchLabels: labels }, template } };
    await api.create(DEPLOYMENTS, { namespace: "default", object }, { signal });
    const path = `/apis/apps/v1/namespaces/default/deployments/d${subresource ?? ""}`;
    const contentType = "application/merge-patch+json";
    const answer = await api.raw({ method: "PATCH", path, contentType, body: JSON.stringify(patch) }, { signal });
    const { metadata } = JSON.parse(answer.body.toString("utf8"));
    assert.equal(metadata.generation, want);
  });
}
