import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../../../test/support/local-api.ts";
import { ENDPOINT_SLICES, SERVICES } from "../../../adapters/kubeapi/index.ts";
import { manyListeners } from "../../../lib/abort.ts";
import { FakeClock } from "../../../lib/clock.ts";
import type { EndpointSlice, ServiceSpec } from "../../../model/generated/types.ts";

const namespace = "default";

async function open(t: TestContext) {
  const server = await testApiServer(new FakeClock());
  t.after(() => server.close());
  const api = server.api("user");
  const options = { signal: manyListeners().signal };
  return {
    addService: (name: string, spec: ServiceSpec) =>
      api.create(SERVICES, { namespace, object: { metadata: { name }, spec } }, options),
    addSlice: (slice: Partial<EndpointSlice>) => {
      const object = { metadata: { name: "s" }, addressType: "IPv4", endpoints: [], ...slice };
      return api.create(ENDPOINT_SLICES, { namespace, object }, options);
    },
  };
}

const PORTS = [{ port: 80 }];

test("an address of a service has one text form: another one does not pass for a free address", async (t) => {
  const { addService } = await open(t);
  await addService("first", { clusterIP: "10.96.0.8", ports: PORTS });
  await assert.rejects(addService("second", { clusterIP: "10.96.0.8", ports: PORTS }), /already allocated/);
  await assert.rejects(addService("second", { clusterIP: "10.96.0.08", ports: PORTS }), /not in the valid range/);
  await assert.rejects(addService("second", { clusterIP: "10.96.0.010", ports: PORTS }), /not in the valid range/);
});

test("a node port of a load balancer that wants none allocated is checked all the same", async (t) => {
  const { addService } = await open(t);
  const spec = { type: "LoadBalancer", allocateLoadBalancerNodePorts: false };
  await assert.rejects(addService("ssh", { ...spec, ports: [{ port: 80, nodePort: 22 }] }), /not in the valid range/);
  const made = await addService("plain", { ...spec, ports: PORTS });
  assert.equal(made.spec?.ports?.[0]?.nodePort, undefined);
});

test("times, ports and addresses that no kernel takes are refused", async (t) => {
  const { addService, addSlice } = await open(t);
  for (const timeoutSeconds of [-1, 0, 86_401]) {
    const spec = { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds } }, ports: PORTS };
    await assert.rejects(addService("sticky", spec), /timeoutSeconds: Invalid value: .*must be greater than 0/);
  }
  for (const port of [-1, 0, 65_536]) await assert.rejects(addSlice({ ports: [{ port }] }), /ports\[0\].port: Invalid/);
  for (const ip of ["10.0.0.256", "010.0.0.1", "x", "fd00::1"]) {
    await assert.rejects(addSlice({ endpoints: [{ addresses: [ip] }] }), /addresses\[0\]: Invalid value/);
  }
  await addSlice({ ports: [{ port: 80 }], endpoints: [{ addresses: ["10.0.0.1"] }] });
});
