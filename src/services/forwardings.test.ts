import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointConditions, EndpointSlice, Service, ServiceSpec } from "../model/generated/types.ts";
import { staleFlows } from "./data-path.ts";
import { forwardingsOf } from "./forwardings.ts";
import { isInSubnet } from "./subnet.ts";

const READY = { ready: true, serving: true, terminating: false };
const GONE = { ready: false, serving: true, terminating: true };
const BROKEN = { ready: false, serving: false, terminating: false };

function service(spec: ServiceSpec = {}): Service {
  const ports = [{ name: "http", port: 80, protocol: "TCP" }];
  return { metadata: { name: "web", namespace: "shop" }, spec: { clusterIP: "10.43.0.5", ports, ...spec } };
}

function slice(...conditions: readonly EndpointConditions[]): EndpointSlice {
  return {
    metadata: { name: "web-1", namespace: "shop" },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints: conditions.map((one, index) => ({ addresses: [`10.88.0.${index + 2}`], conditions: one })),
  };
}

function ips(of: Service, ...slices: readonly EndpointSlice[]): string[] {
  return forwardingsOf(of, slices).flatMap(({ targets }) => targets.map(({ ip, port }) => `${ip}:${port}`));
}

test("a port leads from the service's address to its ready endpoints", () => {
  assert.deepEqual(forwardingsOf(service(), [slice(READY, BROKEN, READY)]), [
    {
      key: "shop/web/http/tcp",
      protocol: "tcp",
      addresses: ["10.43.0.5"],
      port: 80,
      targets: [
        { ip: "10.88.0.2", port: 8080 },
        { ip: "10.88.0.4", port: 8080 },
      ],
    },
  ]);
});

const CASES: readonly {
  name: string;
  spec?: ServiceSpec;
  slices: readonly EndpointSlice[];
  want: readonly string[];
}[] = [
  {
    name: "without ready endpoints those that terminate still serve",
    slices: [slice(GONE, BROKEN)],
    want: ["10.88.0.2:8080"],
  },
  {
    name: "endpoints that terminate get nothing while others are ready",
    slices: [slice(GONE, READY)],
    want: ["10.88.0.3:8080"],
  },
  {
    name: "an endpoint that is not ready though it serves, and stays, gets nothing",
    slices: [slice({ ready: false, serving: true, terminating: false })],
    want: [],
  },
  { name: "an endpoint in two slices counts once", slices: [slice(READY), slice(READY)], want: ["10.88.0.2:8080"] },
  {
    name: "a slice of another address type has no targets",
    slices: [{ ...slice(READY), addressType: "IPv6" }],
    want: [],
  },
  {
    name: "a port of another name or protocol has no targets",
    spec: { ports: [{ name: "http", port: 80, protocol: "UDP" }] },
    slices: [slice(READY)],
    want: [],
  },
  { name: "a headless service forwards nothing", spec: { clusterIP: "None" }, slices: [slice(READY)], want: [] },
  { name: "an external service forwards nothing", spec: { type: "ExternalName" }, slices: [slice(READY)], want: [] },
];
for (const { name, spec, slices, want } of CASES)
  test(name, () => assert.deepEqual(ips(service(spec), ...slices), want));

test("node ports, external addresses and affinity are part of the forwarding", () => {
  const ports = [{ name: "http", port: 80, protocol: "TCP", nodePort: 30_080 }];
  const spec = { type: "NodePort", ports, externalIPs: ["192.0.2.1", "10.43.0.5"], sessionAffinity: "ClientIP" };
  const [forwarding] = forwardingsOf(service(spec), []);
  assert.equal(forwarding?.nodePort, 30_080);
  assert.deepEqual(forwarding?.addresses, ["10.43.0.5", "192.0.2.1"]);
  assert.equal(forwarding?.affinitySeconds, 10_800);
  const short = { ...spec, sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
  assert.equal(forwardingsOf(service(short), [])[0]?.affinitySeconds, 60);
});

test("what the kernel would refuse is left out: it would refuse all services with it", () => {
  const ports = [
    { name: "http", port: 80, protocol: "TCP", nodePort: 70_000 },
    { name: "none", port: 0, protocol: "TCP" },
  ];
  const externalIPs = ["127.0.0.1", "0.0.0.0", "224.0.0.1", "192.0.2.010", "192.0.2.1"];
  const spec = { type: "LoadBalancer", ports, externalIPs, sessionAffinity: "ClientIP" };
  const config = { sessionAffinityConfig: { clientIP: { timeoutSeconds: -1 } } };
  const endpoints = ["10.88.0.2", "010.88.0.3", "127.0.0.1", "0.0.0.0", "239.1.1.1"].map((ip) => ({ addresses: [ip] }));
  const [forwarding, ...others] = forwardingsOf(service({ ...spec, ...config }), [{ ...slice(), endpoints }]);
  assert.deepEqual(others, []);
  assert.equal(forwarding?.nodePort, undefined);
  assert.deepEqual(forwarding?.addresses, ["10.43.0.5", "192.0.2.1"]);
  assert.equal(forwarding?.affinitySeconds, 1);
  assert.deepEqual(forwarding?.targets, [{ ip: "10.88.0.2", port: 8080 }]);
  for (const port of [-1, 0, 65_536]) {
    assert.deepEqual(ips(service(), { ...slice(READY), ports: [{ name: "http", port, protocol: "TCP" }] }), []);
  }
});

test("datagram flows of targets that left are stale, on every address and the node port", () => {
  const udp = (...numbers: readonly number[]) => ({
    key: "k",
    protocol: "udp" as const,
    addresses: ["10.43.0.5"],
    port: 53,
    nodePort: 30_053,
    targets: numbers.map((number) => ({ ip: `10.88.0.${number}`, port: 53 })),
  });
  const target = { ip: "10.88.0.2", port: 53 };
  assert.deepEqual(staleFlows([udp(2, 3)], [udp(3, 4)]), [
    { address: "10.43.0.5", port: 53, target },
    { port: 30_053, target },
  ]);
  assert.deepEqual(staleFlows([udp(2)], []).length, 2);
  assert.deepEqual(staleFlows([udp()], [udp(2)]), [{ port: 30_053 }]);
  assert.deepEqual(staleFlows([{ ...udp(2), protocol: "tcp" }], []), []);
});

test("an address is in a subnet by its first bits", () => {
  assert.equal(isInSubnet("10.43.255.1", "10.43.0.0/16"), true);
  assert.equal(isInSubnet("10.44.0.1", "10.43.0.0/16"), false);
  assert.equal(isInSubnet("fd00::1", "10.43.0.0/16"), false);
  assert.equal(isInSubnet("10.43.0.1", "10.43.0/16"), false);
  assert.equal(isInSubnet("10.43.0.1", ""), false);
});
