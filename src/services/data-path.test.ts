import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { testApiServer } from "../../test/support/local-api.ts";
import { ENDPOINT_SLICES, SERVICES } from "../adapters/kubeapi/index.ts";
import { FakeConnectionTable, FakeForwardingTable } from "../adapters/nftables/fake.ts";
import { NetfilterError } from "../adapters/nftables/index.ts";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { silent } from "../lib/log.ts";
import { DataPath } from "./data-path.ts";
import { ServiceBook } from "./service-book.ts";

const namespace = "default";

async function open(t: TestContext) {
  const clock = new FakeClock();
  const server = await testApiServer(clock);
  const api = server.api("user");
  const stop = manyListeners();
  const table = new FakeForwardingTable();
  const connections = new FakeConnectionTable();
  const book = new ServiceBook({ api, clock, log: silent });
  const path = new DataPath({ book, table, connections, clock, log: silent }, ["10.96.0.1"]);
  const running = [book.run(stop.signal), path.run(stop.signal)];
  t.after(async () => {
    stop.abort();
    await Promise.all(running);
    await server.close();
  });
  const options = { signal: manyListeners().signal };
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 8; turn++) await clock.advance(0);
  };
  const addService = async (name: string, clusterIP: string, protocol = "TCP") => {
    const spec = { clusterIP, ports: [{ name: "p", port: 80, protocol }] };
    await api.create(SERVICES, { namespace, object: { metadata: { name }, spec } }, options);
    await settle();
  };
  const setEndpoints = async (service: string, ...ips: readonly string[]) => {
    const protocol = service === "dns" ? "UDP" : "TCP";
    const object = {
      metadata: { name: `${service}-1`, labels: { "kubernetes.io/service-name": service } },
      addressType: "IPv4",
      ports: [{ name: "p", port: 8080, protocol }],
      endpoints: ips.map((ip) => ({ addresses: [ip] })),
    };
    const change = { namespace, name: object.metadata.name, type: "apply", force: true, fieldManager: "t" } as const;
    const body = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", ...object };
    await api.patch(ENDPOINT_SLICES, { ...change, body }, options);
    await settle();
  };
  await settle();
  return { api, clock, table, connections, options, settle, addService, setEndpoints };
}

test("the table is written at the start, and each change writes its own service only", async (t) => {
  const { table, addService, setEndpoints } = await open(t);
  assert.deepEqual(table.writes, [[]]);
  await addService("a", "10.96.0.5");
  await addService("b", "10.96.0.6");
  table.writes.length = 0;
  await setEndpoints("a", "10.88.0.2");
  assert.deepEqual(table.writes, [["default/a/p/tcp"]]);
  assert.deepEqual(table.kernel?.get("default/a/p/tcp")?.targets, [{ ip: "10.88.0.2", port: 8080 }]);
});

test("a service that goes takes its forwarding along", async (t) => {
  const { api, table, options, settle, addService, setEndpoints } = await open(t);
  await addService("a", "10.96.0.5");
  await setEndpoints("a", "10.88.0.2");
  await api.delete(SERVICES, { namespace, name: "a" }, options);
  await settle();
  assert.deepEqual([...(table.kernel?.keys() ?? [])], []);
});

test("services that the node answers itself are not forwarded", async (t) => {
  const { table, addService } = await open(t);
  await addService("own", "10.96.0.1");
  assert.deepEqual([...(table.kernel?.keys() ?? [])], []);
});

test("flows to a removed datagram endpoint are forgotten", async (t) => {
  const { connections, addService, setEndpoints } = await open(t);
  await addService("dns", "10.96.0.5", "UDP");
  await setEndpoints("dns", "10.88.0.2", "10.88.0.3");
  assert.deepEqual(connections.forgotten, []);
  await setEndpoints("dns", "10.88.0.3");
  assert.deepEqual(connections.forgotten, [
    { address: "10.96.0.5", port: 80, target: { ip: "10.88.0.2", port: 8080 } },
  ]);
});

test("a foreign flush is repaired within a minute, or with the next change", async (t) => {
  const { table, clock, settle, addService, setEndpoints } = await open(t);
  await addService("a", "10.96.0.5");
  await setEndpoints("a", "10.88.0.2");
  table.kernel = undefined;
  await clock.advance(60_000);
  await settle();
  assert.deepEqual([...(table.kernel ?? new Map()).keys()], ["default/a/p/tcp"]);
  table.kernel = undefined;
  await setEndpoints("a", "10.88.0.3");
  await clock.advance(1000);
  await settle();
  const after: FakeForwardingTable["kernel"] = table.kernel;
  assert.deepEqual((after as FakeForwardingTable["kernel"])?.get("default/a/p/tcp")?.targets[0]?.ip, "10.88.0.3");
});

test("a failed write is repeated, whole, and nothing is lost meanwhile", async (t) => {
  const { table, clock, settle, addService, setEndpoints } = await open(t);
  await addService("a", "10.96.0.5");
  table.failure = new NetfilterError("Refused", "busy");
  await setEndpoints("a", "10.88.0.2");
  await setEndpoints("a", "10.88.0.3");
  await clock.advance(1000);
  await settle();
  assert.deepEqual(table.kernel?.get("default/a/p/tcp")?.targets, [{ ip: "10.88.0.3", port: 8080 }]);
});

test("nothing is written while nothing changes", async (t) => {
  const { table, clock, settle } = await open(t);
  const { length } = table.writes;
  await clock.advance(10 * 60_000);
  await settle();
  assert.equal(table.writes.length, length);
});

test("a service cannot take the node's own addresses by another field", async (t) => {
  const { api, table, options, settle, setEndpoints } = await open(t);
  const spec = { clusterIP: "10.96.0.5", externalIPs: ["10.96.0.1", "192.0.2.1"], ports: [{ name: "p", port: 80 }] };
  await api.create(SERVICES, { namespace, object: { metadata: { name: "thief" }, spec } }, options);
  await setEndpoints("thief", "10.88.0.2");
  await settle();
  assert.deepEqual(
    [...(table.kernel?.values() ?? [])].map(({ addresses }) => addresses),
    [["10.96.0.5", "192.0.2.1"]],
  );
});

test("a write that fails for the first time in a while is repeated soon: a success begins anew", async (t) => {
  const { table, clock, settle, addService, setEndpoints } = await open(t);
  await addService("a", "10.96.0.5");
  const failOnce = async (ip: string, waitMs: number): Promise<boolean> => {
    table.failure = new NetfilterError("Refused", "busy");
    await setEndpoints("a", ip);
    assert.notEqual(table.kernel?.get("default/a/p/tcp")?.targets[0]?.ip, ip, "it has failed");
    await clock.advance(waitMs);
    await settle();
    return table.kernel?.get("default/a/p/tcp")?.targets[0]?.ip === ip;
  };
  for (let round = 2; round < 9; round++) assert.ok(await failOnce(`10.88.0.${round}`, 250), `round ${round}`);
});

test("a slice that goes takes its targets along, and one that is given to another service changes both", async (t) => {
  const { api, table, options, settle, addService, setEndpoints } = await open(t);
  const targets = (name: string) => table.kernel?.get(`default/${name}/p/tcp`)?.targets.map(({ ip }) => ip);
  await addService("a", "10.96.0.5");
  await addService("b", "10.96.0.6");
  await setEndpoints("a", "10.88.0.2");
  const body = { metadata: { labels: { "kubernetes.io/service-name": "b" } } };
  await api.patch(ENDPOINT_SLICES, { namespace, name: "a-1", type: "merge", body }, options);
  await settle();
  assert.deepEqual([targets("a"), targets("b")], [[], ["10.88.0.2"]]);
  await api.delete(ENDPOINT_SLICES, { namespace, name: "a-1" }, options);
  await settle();
  assert.deepEqual([targets("a"), targets("b")], [[], []]);
});
