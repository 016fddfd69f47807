import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, Service } from "./generated/types.ts";
import { serviceVariables } from "./service-env.ts";

const service = (name: string, namespace: string, spec: Partial<Service["spec"]>): Service => ({
  metadata: { name, namespace },
  spec: { ports: [{ port: 80 }], ...spec },
});
const pod = (namespace: string, enableServiceLinks?: boolean): Pod => ({
  metadata: { name: "p", namespace },
  spec: { containers: [], ...(enableServiceLinks !== undefined && { enableServiceLinks }) },
});
const kubernetes = service("kubernetes", "default", {
  clusterIP: "10.0.0.1",
  ports: [{ port: 443, name: "https", protocol: "TCP" }],
});
const database = service("my-db", "shop", {
  clusterIP: "10.0.0.2",
  ports: [
    { port: 5432, name: "sql" },
    { port: 53, protocol: "UDP" },
  ],
});

test("all variables of a service", () => {
  assert.deepEqual(Object.fromEntries(serviceVariables(pod("shop"), [database])), {
    MY_DB_SERVICE_HOST: "10.0.0.2",
    MY_DB_SERVICE_PORT: "5432",
    MY_DB_SERVICE_PORT_SQL: "5432",
    MY_DB_PORT: "tcp://10.0.0.2:5432",
    MY_DB_PORT_5432_TCP: "tcp://10.0.0.2:5432",
    MY_DB_PORT_5432_TCP_PROTO: "tcp",
    MY_DB_PORT_5432_TCP_PORT: "5432",
    MY_DB_PORT_5432_TCP_ADDR: "10.0.0.2",
    MY_DB_PORT_53_UDP: "udp://10.0.0.2:53",
    MY_DB_PORT_53_UDP_PROTO: "udp",
    MY_DB_PORT_53_UDP_PORT: "53",
    MY_DB_PORT_53_UDP_ADDR: "10.0.0.2",
  });
});

const hosts = (of: Pod, ...services: Service[]): string[] =>
  [...serviceVariables(of, services).keys()].filter((name) => name.endsWith("_SERVICE_HOST"));

test("the API server is told to every pod, others only to their own namespace", () => {
  assert.deepEqual(hosts(pod("shop"), kubernetes, database), ["KUBERNETES_SERVICE_HOST", "MY_DB_SERVICE_HOST"]);
  assert.deepEqual(hosts(pod("other"), kubernetes, database), ["KUBERNETES_SERVICE_HOST"]);
});

test("without links only the API server is told", () => {
  assert.deepEqual(hosts(pod("shop", false), kubernetes, database), ["KUBERNETES_SERVICE_HOST"]);
});

test("services without an address or a port are none", () => {
  assert.deepEqual(hosts(pod("shop"), service("a", "shop", { clusterIP: "None" }), service("b", "shop", {})), []);
  assert.deepEqual(hosts(pod("shop"), service("c", "shop", { clusterIP: "10.0.0.3", ports: [] })), []);
});

test("an IPv6 address stands in brackets in a URL only", () => {
  const found = serviceVariables(pod("shop"), [service("six", "shop", { clusterIP: "fd00::1" })]);
  assert.equal(found.get("SIX_SERVICE_HOST"), "fd00::1");
  assert.equal(found.get("SIX_PORT"), "tcp://[fd00::1]:80");
});
