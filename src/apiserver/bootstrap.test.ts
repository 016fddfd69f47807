import assert from "node:assert/strict";
import { test } from "node:test";
import { testApiServer } from "../../test/support/local-api.ts";
import { ENDPOINT_SLICES, SERVICES } from "../adapters/kubeapi/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { bootstrapServices } from "./bootstrap.ts";

const options = { signal: manyListeners().signal };
const FIRST = { apiAddress: "10.96.0.1", dnsAddress: "10.96.0.10" };

test("the node's own services have their addresses, no selector and one endpoint", async (t) => {
  const server = await testApiServer(new FakeClock());
  t.after(() => server.close());
  const api = server.api("kubelet-up");
  await bootstrapServices(api, FIRST, options);
  // Again, as at each start.
  await bootstrapServices(api, FIRST, options);
  const { spec } = await api.get(SERVICES, { namespace: "default", name: "kubernetes" }, options);
  assert.equal(spec?.clusterIP, "10.96.0.1");
  assert.equal(spec?.selector, undefined);
  assert.deepEqual(spec?.ports, [{ name: "https", port: 443, protocol: "TCP", targetPort: 443 }]);
  const dns = await api.get(SERVICES, { namespace: "kube-system", name: "kube-dns" }, options);
  assert.equal(dns.spec?.clusterIP, "10.96.0.10");
  const slices = await api.list(ENDPOINT_SLICES, {}, options);
  assert.deepEqual(
    slices.items.map(({ metadata, endpoints }) => `${metadata.name} ${endpoints?.[0]?.addresses}`),
    ["kubernetes 10.96.0.1", "kube-dns 10.96.0.10"],
  );
});

test("with another address they move, and one that a user's service has is left to it", async (t) => {
  const server = await testApiServer(new FakeClock());
  t.after(() => server.close());
  const api = server.api("kubelet-up");
  await bootstrapServices(api, FIRST, options);
  const object = { metadata: { name: "taken" }, spec: { clusterIP: "10.96.0.20", ports: [{ port: 80 }] } };
  await api.create(SERVICES, { namespace: "default", object }, options);
  await bootstrapServices(api, { apiAddress: "10.96.0.2", dnsAddress: "10.96.0.20" }, options);
  const { spec } = await api.get(SERVICES, { namespace: "default", name: "kubernetes" }, options);
  assert.equal(spec?.clusterIP, "10.96.0.2");
  const slice = await api.get(ENDPOINT_SLICES, { namespace: "default", name: "kubernetes" }, options);
  assert.deepEqual(slice.endpoints?.[0]?.addresses, ["10.96.0.2"]);
  await assert.rejects(api.get(SERVICES, { namespace: "kube-system", name: "kube-dns" }, options), {
    code: "NotFound",
  });
});
