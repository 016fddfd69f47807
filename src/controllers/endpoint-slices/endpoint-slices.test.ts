import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { ControllerBench } from "../../../test/support/controllers.ts";
import { ENDPOINT_SLICES, PODS, SERVICES } from "../../adapters/kubeapi/index.ts";
import type { ServiceSpec } from "../../model/generated/types.ts";
import { endpointSliceController } from "./endpoint-slices.ts";

const NAMESPACE = "default";

async function bench(t: TestContext) {
  const made = await ControllerBench.start(endpointSliceController);
  t.after(() => made.close());
  await made.addNode();
  const { api, signal } = made;
  const addService = async (name: string, spec: ServiceSpec = {}) => {
    const object = {
      metadata: { name },
      spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 8080 }], ...spec },
    };
    await api.create(SERVICES, { namespace: NAMESPACE, object }, signal);
    await made.settle();
  };
  const addPod = async (name: string, ip: string, app = "web") => {
    const spec = { containers: [{ name: "c", image: "x" }], nodeName: "node" };
    await api.create(PODS, { namespace: NAMESPACE, object: { metadata: { name, labels: { app } }, spec } }, signal);
    await report(name, ip, "True");
  };
  const report = async (name: string, ip: string, ready: string) => {
    const status = { phase: "Running", podIP: ip, podIPs: [{ ip }], conditions: [{ type: "Ready", status: ready }] };
    const change = { namespace: NAMESPACE, name, type: "strategic", subresource: "status", body: { status } } as const;
    await api.patch(PODS, change, signal);
    await made.settle();
  };
  const slices = async () =>
    (await api.list(ENDPOINT_SLICES, { namespace: NAMESPACE }, signal)).items.filter(
      ({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] !== "kubernetes",
    );
  /** `address` or `address!` for one that is not ready. */
  const addresses = async () =>
    (await slices()).flatMap(({ endpoints = [] }) =>
      endpoints.map(({ addresses: [ip], conditions }) => `${ip}${conditions?.ready ? "" : "!"}`),
    );
  return { made, api, signal, addService, addPod, report, slices, addresses };
}

test("endpoints follow the pods: there, not ready, relabelled, gone", async (t) => {
  const { made, api, signal, addService, addPod, report, addresses } = await bench(t);
  await addService("web");
  assert.deepEqual(await addresses(), []);
  await addPod("a", "10.88.0.2");
  await addPod("b", "10.88.0.3");
  assert.deepEqual(await addresses(), ["10.88.0.2", "10.88.0.3"]);
  await report("a", "10.88.0.2", "False");
  assert.deepEqual(await addresses(), ["10.88.0.2!", "10.88.0.3"]);
  const labels = { metadata: { labels: { app: "other" } } };
  await api.patch(PODS, { namespace: NAMESPACE, name: "a", type: "merge", body: labels }, signal);
  await made.settle();
  assert.deepEqual(await addresses(), ["10.88.0.3"]);
  await api.delete(PODS, { namespace: NAMESPACE, name: "b", graceSeconds: 0 }, signal);
  await made.settle();
  assert.deepEqual(await addresses(), []);
});

test("many pods at once make one slice, and a change of somebody else's is undone", async (t) => {
  const { made, api, signal, addService, addPod, slices } = await bench(t);
  await addService("web");
  await Promise.all(["a", "b", "c"].map((name, index) => addPod(name, `10.88.0.${index + 2}`)));
  await made.settle();
  const [slice] = await slices();
  assert.equal((await slices()).length, 1);
  assert.equal(slice?.endpoints?.length, 3);
  const name = slice?.metadata.name ?? "";
  await api.patch(ENDPOINT_SLICES, { namespace: NAMESPACE, name, type: "merge", body: { endpoints: [] } }, signal);
  await made.settle();
  assert.equal((await slices())[0]?.endpoints?.length, 3);
  await api.delete(ENDPOINT_SLICES, { namespace: NAMESPACE, name }, signal);
  await made.settle();
  assert.equal((await slices())[0]?.endpoints?.length, 3);
});

test("slices go with their service", async (t) => {
  const { made, api, signal, addService, addPod, slices } = await bench(t);
  await addService("web");
  await addPod("a", "10.88.0.2");
  assert.equal((await slices()).length, 1);
  await api.delete(SERVICES, { namespace: NAMESPACE, name: "web" }, signal);
  await made.settle();
  assert.deepEqual(await slices(), []);
});

test("a service without a selector and one of another name elsewhere are left alone", async (t) => {
  const { made, api, signal, slices } = await bench(t);
  const object = { metadata: { name: "db" }, spec: { ports: [{ port: 5432 }] } };
  await api.create(SERVICES, { namespace: NAMESPACE, object }, signal);
  const own = {
    metadata: { name: "db-1", labels: { "kubernetes.io/service-name": "db" } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["192.0.2.1"] }],
    ports: [{ name: "", port: 5432, protocol: "TCP" }],
  };
  await api.create(ENDPOINT_SLICES, { namespace: NAMESPACE, object: own }, signal);
  await made.settle();
  assert.deepEqual(
    (await slices()).map(({ metadata }) => metadata.name),
    ["db-1"],
  );
});
