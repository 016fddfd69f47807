import assert from "node:assert/strict";
import { test } from "node:test";
import {
  containerCpuLimit,
  containerCpuShares,
  containerMemoryLimit,
  cpuQuota,
  cpuShares,
  oomScoreAdj,
  sharesToWeight,
} from "./cgroup-values.ts";
import type { Container, Pod, PodSpec } from "./generated/types.ts";
import { qosClass } from "./qos.ts";
import { formatQuantity } from "./quantity.ts";
import { bytesOf, cpuMilli, isLimited, podLimits, podRequests, type ResourceAmounts } from "./resources.ts";

type Texts = Record<string, string>;

function container(name: string, requests?: Texts, limits?: Texts): Container {
  return { name, image: "x", resources: { ...(requests && { requests }), ...(limits && { limits }) } };
}

function sidecar(name: string, requests?: Texts): Container {
  return { ...container(name, requests), restartPolicy: "Always" };
}

function podOf(spec: Partial<PodSpec>): Pod {
  return { metadata: { name: "p" }, spec: { containers: [], ...spec } };
}

function texts(amounts: ResourceAmounts): Texts {
  return Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, formatQuantity(amount)]));
}

const requestCases: { name: string; spec: Partial<PodSpec>; want: Texts }[] = [
  { name: "no containers", spec: {}, want: {} },
  {
    name: "regular containers add up",
    spec: { containers: [container("a", { cpu: "100m", memory: "1Gi" }), container("b", { cpu: "0.5" })] },
    want: { cpu: "600m", memory: "1Gi" },
  },
  {
    name: "a large init container raises the sum",
    spec: { containers: [container("a", { cpu: "1" })], initContainers: [container("i", { cpu: "3", memory: "1Ki" })] },
    want: { cpu: "3", memory: "1Ki" },
  },
  {
    name: "init containers run one after another",
    spec: {
      containers: [container("a", { cpu: "1" })],
      initContainers: [container("i", { cpu: "2" }), container("j", { cpu: "2" })],
    },
    want: { cpu: "2" },
  },
  {
    name: "a sidecar counts beside the regular ones and beside later init containers",
    spec: {
      containers: [container("a", { cpu: "1" })],
      initContainers: [container("i", { cpu: "3" }), sidecar("s", { cpu: "1" }), container("j", { cpu: "4" })],
    },
    want: { cpu: "5" },
  },
  {
    name: "an earlier init container does not run beside a later sidecar",
    spec: {
      containers: [container("a", { cpu: "1" })],
      initContainers: [container("i", { cpu: "3" }), sidecar("s", { cpu: "1" })],
    },
    want: { cpu: "3" },
  },
  {
    name: "overhead comes on top",
    spec: { containers: [container("a", { cpu: "1" })], overhead: { cpu: "250m", memory: "64Mi" } },
    want: { cpu: "1250m", memory: "64Mi" },
  },
  {
    name: "pod-level requests replace those of the containers",
    spec: { containers: [container("a", { cpu: "1", memory: "1Gi" })], resources: { requests: { cpu: "4" } } },
    want: { cpu: "4", memory: "1Gi" },
  },
];
for (const { name, spec, want } of requestCases) {
  test(`requests: ${name}`, () => assert.deepEqual(texts(podRequests(podOf(spec))), want));
}

test("thousands of containers that each ask for a resource of their own do not block the agent", () => {
  const names = Array.from({ length: 5000 }, (_, at) => `example.com/card${at}`);
  const all = names.map((name) => container("c", { [name]: "1" }, { [name]: "1" }));
  const specs = [
    { containers: all },
    { initContainers: all },
    { initContainers: all.map((each) => ({ ...each, restartPolicy: "Always" })) },
  ];
  const began = performance.now();
  for (const spec of specs) {
    assert.equal(Object.keys(podRequests(podOf(spec))).length, names.length);
    assert.equal(Object.keys(podLimits(podOf(spec))).length, names.length);
  }
  // 0.2 s; it was a minute.
  assert.ok(performance.now() - began < 4000);
});

test("limits: overhead raises a limit but makes none", () => {
  const spec = { containers: [container("a", {}, { cpu: "1" })], overhead: { cpu: "250m", memory: "64Mi" } };
  assert.deepEqual(texts(podLimits(podOf(spec))), { cpu: "1250m" });
});

test("a pod is limited when every container is, or the pod itself", () => {
  const limited = container("a", {}, { cpu: "1" });
  assert.equal(isLimited(podOf({ containers: [limited] }), "cpu"), true);
  assert.equal(isLimited(podOf({ containers: [limited, container("b")] }), "cpu"), false);
  assert.equal(isLimited(podOf({ containers: [limited], initContainers: [container("i")] }), "cpu"), false);
  assert.equal(isLimited(podOf({ containers: [container("b")], resources: { limits: { cpu: "1" } } }), "cpu"), true);
  assert.equal(isLimited(podOf({ containers: [limited] }), "memory"), false);
});

test("amounts as numbers", () => {
  const amounts = podRequests(podOf({ containers: [container("a", { cpu: "1500m", memory: "1Mi" })] }));
  assert.equal(cpuMilli(amounts), 1500);
  assert.equal(bytesOf(amounts, "memory"), 1048576);
  assert.equal(bytesOf(amounts, "pods"), undefined);
  assert.equal(cpuMilli({}), 0);
});

for (const [milli, want] of [
  [0, 2],
  [1, 2],
  [2, 2],
  [100, 102],
  [1000, 1024],
  [1_000_000, 262_144],
] as const) {
  test(`${milli} millicores are ${want} shares`, () => assert.equal(cpuShares(milli), want));
}
for (const [milli, want] of [
  [0, 0],
  [1, 1000],
  [10, 1000],
  [500, 50_000],
  [2000, 200_000],
] as const) {
  test(`${milli} millicores are a quota of ${want}`, () => assert.equal(cpuQuota(milli, 100_000), want));
}
for (const [shares, want] of [
  [0, 1],
  [2, 1],
  [1024, 39],
  [262_144, 10_000],
] as const) {
  test(`${shares} shares are weight ${want}`, () => assert.equal(sharesToWeight(shares), want));
}

test("shares of a container follow the request, else the limit", () => {
  assert.equal(containerCpuShares(podOf({}), container("a", { cpu: "500m" }, { cpu: "2" })), 512);
  assert.equal(containerCpuShares(podOf({}), container("a", {}, { cpu: "2" })), 2048);
  assert.equal(containerCpuShares(podOf({}), container("a", { cpu: "0" }, { cpu: "2" })), 2);
  assert.equal(containerCpuShares(podOf({}), { name: "a" }), 2);
});

test("a container without CPU limit has the pod's, and its shares where it asks for none", () => {
  const pod = podOf({ containers: [], resources: { limits: { cpu: "80m" } } });
  assert.equal(containerCpuLimit(pod, container("a", {}, { cpu: "20m" })), 20);
  assert.equal(containerCpuLimit(pod, container("a")), 80);
  assert.equal(containerCpuLimit(podOf({}), container("a")), 0);
  assert.equal(containerCpuShares(pod, container("a")), 81);
  assert.equal(containerCpuShares(pod, container("a", { cpu: "20m" })), 20);
});

test("a container without memory limit has the pod's", () => {
  const pod = podOf({ containers: [], resources: { limits: { memory: "2Ki" } } });
  assert.equal(containerMemoryLimit(pod, container("a", {}, { memory: "1Ki" })), 1024);
  assert.equal(containerMemoryLimit(pod, container("a")), 2048);
  assert.equal(containerMemoryLimit(podOf({}), container("a")), undefined);
});

const full = { cpu: "1", memory: "1Gi" };
const qosCases: { name: string; spec: Partial<PodSpec>; want: string }[] = [
  { name: "nothing asked", spec: { containers: [container("a")] }, want: "BestEffort" },
  {
    name: "only zeros asked",
    spec: { containers: [container("a", { cpu: "0" }, { memory: "0" })] },
    want: "BestEffort",
  },
  {
    name: "other resources do not count",
    spec: { containers: [container("a", { "ephemeral-storage": "1Gi" })] },
    want: "BestEffort",
  },
  { name: "limits equal requests", spec: { containers: [container("a", full, full)] }, want: "Guaranteed" },
  {
    name: "equal amounts in other words",
    spec: { containers: [container("a", { cpu: "1000m", memory: "1024Mi" }, full)] },
    want: "Guaranteed",
  },
  {
    name: "requests below limits",
    spec: { containers: [container("a", { cpu: "500m", memory: "1Gi" }, full)] },
    want: "Burstable",
  },
  {
    name: "one container without limits",
    spec: { containers: [container("a", full, full), container("b")] },
    want: "Burstable",
  },
  {
    name: "an init container without limits",
    spec: { containers: [container("a", full, full)], initContainers: [container("i")] },
    want: "Burstable",
  },
  { name: "no memory limit", spec: { containers: [container("a", full, { cpu: "1" })] }, want: "Burstable" },
  { name: "only a request", spec: { containers: [container("a", { cpu: "1m" })] }, want: "Burstable" },
  {
    name: "pod-level resources decide alone",
    spec: { containers: [container("a")], resources: { requests: full, limits: full } },
    want: "Guaranteed",
  },
];
for (const { name, spec, want } of qosCases) test(`QoS: ${name}`, () => assert.equal(qosClass(podOf(spec)), want));

test("QoS: an existing class in the status wins", () => {
  assert.equal(
    qosClass({ ...podOf({ containers: [container("a")] }), status: { qosClass: "Guaranteed" } }),
    "Guaranteed",
  );
});

const capacity = 10 * 1024 ** 3;
const oomCases: { name: string; pod: Pod; want: number }[] = [
  { name: "BestEffort goes first", pod: podOf({ containers: [container("a")] }), want: 1000 },
  { name: "Guaranteed goes last", pod: podOf({ containers: [container("a", full, full)] }), want: -997 },
  { name: "Burstable by its request", pod: podOf({ containers: [container("a", { memory: "1Gi" })] }), want: 900 },
  {
    name: "a tiny request stays below BestEffort",
    pod: podOf({ containers: [container("a", { memory: "1Mi" })] }),
    want: 999,
  },
  {
    name: "a huge request stays above Guaranteed",
    pod: podOf({ containers: [container("a", { memory: "10Gi" })] }),
    want: 3,
  },
  {
    name: "pod-level requests are spread",
    pod: podOf({
      containers: [container("a", { memory: "1Gi" }), container("b")],
      resources: { requests: { memory: "3Gi" } },
    }),
    want: 800,
  },
  {
    name: "a node-critical pod is protected",
    pod: {
      metadata: { name: "p", annotations: { "kubernetes.io/config.source": "file" } },
      spec: { containers: [container("a")], priorityClassName: "system-node-critical" },
    },
    want: -997,
  },
];
for (const { name, pod, want } of oomCases) {
  test(`OOM score: ${name}`, () => {
    const [first] = pod.spec.containers;
    assert.ok(first);
    assert.equal(oomScoreAdj(pod, first, capacity), want);
  });
}

test("OOM score: a sidecar is not killed before the smallest regular container", () => {
  const helper = sidecar("s", { memory: "1Mi" });
  const spec = {
    containers: [container("a", { memory: "2Gi" }), container("b", { memory: "1Gi" })],
    initContainers: [helper],
  };
  assert.equal(oomScoreAdj(podOf(spec), helper, capacity), 900);
});
