import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointSlice, Pod, Service } from "../../model/generated/types.ts";
import { endpointGroups } from "./endpoints-of.ts";
import { planSlices, type SlicePlan } from "./plan-slices.ts";

const PORTS = [{ name: "http", port: 80, targetPort: "web", protocol: "TCP" }];

function service(spec: Partial<Service["spec"] & object> = {}): Service {
  const metadata = {
    name: "shop",
    namespace: "default",
    uid: "svc",
    labels: { team: "a", "kubernetes.io/service-name": "x" },
  };
  return {
    metadata,
    spec: { clusterIP: "10.43.0.7", ipFamilies: ["IPv4"], ports: PORTS, selector: { app: "shop" }, ...spec },
  };
}

interface PodFacts {
  readonly name: string;
  readonly ip?: string;
  readonly port?: number;
  readonly isReady?: boolean;
  readonly isTerminating?: boolean;
  readonly phase?: string;
  readonly hostname?: string;
}

function pod({
  name,
  ip = "10.88.0.2",
  port = 8080,
  isReady = true,
  isTerminating,
  phase = "Running",
  hostname,
}: PodFacts): Pod {
  return {
    metadata: {
      name,
      namespace: "default",
      uid: `uid-${name}`,
      ...(isTerminating && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    },
    spec: {
      containers: [{ name: "c", ports: [{ name: "web", containerPort: port }] }],
      nodeName: "node",
      ...(hostname && { hostname, subdomain: "shop" }),
    },
    status: {
      phase,
      ...(ip !== "" && { podIPs: [{ ip }] }),
      conditions: [{ type: "Ready", status: isReady ? "True" : "False" }],
    },
  };
}

function plan(of: Service, pods: readonly Pod[], existing: readonly EndpointSlice[] = []): SlicePlan {
  const groups = endpointGroups({ service: of, pods, addressType: "IPv4", zoneOf: () => "z1" });
  return planSlices({ service: of, addressType: "IPv4", groups, existing });
}

/** The slices after a plan was carried out. */
function carryOut(existing: readonly EndpointSlice[], { create, update, remove }: SlicePlan): EndpointSlice[] {
  const names = new Set([...update, ...remove].map(({ metadata }) => metadata.name));
  const kept = existing.filter(({ metadata }) => !names.has(metadata.name));
  const made = create.map((slice, index) => ({
    ...slice,
    metadata: { ...slice.metadata, name: `new-${existing.length + index}` },
  }));
  return [...kept, ...update, ...made];
}

function counts(slices: readonly EndpointSlice[]): number[] {
  return slices.map(({ endpoints = [] }) => endpoints.length).sort((a, b) => a - b);
}

test("a slice says what it belongs to, which ports it has and what state its endpoints are in", () => {
  const { create } = plan(service(), [
    pod({ name: "b", ip: "10.88.0.3", hostname: "b-0" }),
    pod({ name: "a", isReady: false }),
  ]);
  assert.equal(create.length, 1);
  assert.deepEqual(create[0], {
    metadata: {
      generateName: "shop-",
      namespace: "default",
      labels: {
        team: "a",
        "kubernetes.io/service-name": "shop",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
      },
      ownerReferences: [
        { apiVersion: "v1", kind: "Service", name: "shop", uid: "svc", controller: true, blockOwnerDeletion: true },
      ],
    },
    addressType: "IPv4",
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
    endpoints: [
      {
        addresses: ["10.88.0.2"],
        conditions: { ready: false, serving: false, terminating: false },
        nodeName: "node",
        targetRef: { kind: "Pod", namespace: "default", name: "a", uid: "uid-a" },
        zone: "z1",
      },
      {
        addresses: ["10.88.0.3"],
        conditions: { ready: true, serving: true, terminating: false },
        hostname: "b-0",
        nodeName: "node",
        targetRef: { kind: "Pod", namespace: "default", name: "b", uid: "uid-b" },
        zone: "z1",
      },
    ],
  });
});

const STATES = [
  {
    name: "a terminating pod serves but is not ready",
    given: { isTerminating: true },
    want: { ready: false, serving: true, terminating: true },
  },
  {
    name: "publishNotReadyAddresses makes every endpoint ready",
    given: { isReady: false, isTerminating: true },
    spec: { publishNotReadyAddresses: true },
    want: { ready: true, serving: false, terminating: true },
  },
  { name: "a pod that failed is no endpoint", given: { phase: "Failed" }, want: undefined },
  { name: "a pod that succeeded is no endpoint", given: { phase: "Succeeded" }, want: undefined },
  { name: "a pod without an address is no endpoint", given: { ip: "" }, want: undefined },
  { name: "an IPv6 address is no endpoint of an IPv4 slice", given: { ip: "fd00::1" }, want: undefined },
];
for (const { name, given, spec = {}, want } of STATES) {
  test(name, () => {
    const { create } = plan(service(spec), [pod({ name: "a", ...given })]);
    assert.deepEqual(create[0]?.endpoints?.[0]?.conditions, want);
  });
}

test("a headless service without ports has endpoints without ports, and a label", () => {
  const { create } = plan(service({ clusterIP: "None", ports: [] }), [pod({ name: "a" })]);
  assert.deepEqual(create[0]?.ports, []);
  assert.equal(create[0]?.endpoints?.length, 1);
  assert.equal(create[0]?.metadata.labels?.["service.kubernetes.io/headless"], "");
});

test("pods with other numbers behind a named port have slices of their own", () => {
  const { create } = plan(service(), [pod({ name: "a" }), pod({ name: "b", port: 9090 })]);
  assert.deepEqual(
    create.map(({ ports }) => ports?.[0]?.port),
    [8080, 9090],
  );
});

test("a service without endpoints has one empty slice, which stays as it is", () => {
  const first = carryOut([], plan(service(), []));
  assert.deepEqual(counts(first), [0]);
  assert.deepEqual(plan(service(), [], first), { create: [], update: [], remove: [] });
});

test("the empty slice becomes the first one with endpoints, and the last one empty again", () => {
  const empty = carryOut([], plan(service(), []));
  const next = plan(service(), [pod({ name: "a" })], empty);
  assert.deepEqual([next.create.length, next.update.length, next.remove.length], [0, 1, 0]);
  const back = plan(service(), [], carryOut(empty, next));
  assert.deepEqual([back.create.length, back.update.length, back.remove.length], [0, 1, 0]);
  assert.deepEqual(back.update[0]?.ports, []);
});

test("a slice holds 100 endpoints, and one more endpoint costs one write", () => {
  const pods = Array.from({ length: 250 }, (_, index) => pod({ name: `p${index}`, ip: `10.88.1.${index}` }));
  const slices = carryOut([], plan(service(), pods));
  assert.deepEqual(counts(slices), [50, 100, 100]);
  assert.deepEqual(plan(service(), pods, slices), { create: [], update: [], remove: [] });
  const more = plan(service(), [...pods, pod({ name: "extra" })], slices);
  assert.deepEqual([more.create.length, more.update.length, more.remove.length], [0, 1, 0]);
  assert.deepEqual(counts(carryOut(slices, more)), [51, 100, 100]);
});

test("slices that lose all their endpoints go", () => {
  const pods = Array.from({ length: 150 }, (_, index) => pod({ name: `p${index}`, ip: `10.88.1.${index}` }));
  const slices = carryOut([], plan(service(), pods));
  const left = slices[0]?.endpoints?.map(({ targetRef }) => targetRef?.name) ?? [];
  const fewer = plan(
    service(),
    pods.filter(({ metadata }) => left.includes(metadata.name ?? "")),
    slices,
  );
  assert.deepEqual([fewer.create.length, fewer.update.length, fewer.remove.length], [0, 0, 1]);
});

test("a changed label of the service is copied, and slices of an earlier service of the name are replaced", () => {
  const slices = carryOut([], plan(service(), [pod({ name: "a" })]));
  const labelled = { ...service(), metadata: { ...service().metadata, labels: { team: "b" } } };
  assert.equal(plan(labelled, [pod({ name: "a" })], slices).update[0]?.metadata.labels?.["team"], "b");
  const other = { ...service(), metadata: { ...service().metadata, uid: "svc2" } };
  const replaced = plan(other, [pod({ name: "a" })], slices);
  assert.deepEqual([replaced.create.length, replaced.update.length, replaced.remove.length], [1, 0, 1]);
});
