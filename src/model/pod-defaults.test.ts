import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, Pod, PodSpec } from "./generated/types.ts";
import { defaultPod } from "./pod-defaults.ts";

function defaulted(spec: Partial<PodSpec>): PodSpec {
  return defaultPod({ metadata: { name: "p" }, spec: { containers: [], ...spec } }).spec;
}

function container(fields: Partial<Container>, spec: Partial<PodSpec> = {}): Container | undefined {
  return defaulted({ ...spec, containers: [{ name: "c", image: "i:1", ...fields }] }).containers[0];
}

test("the pod's own defaults", () => {
  assert.deepEqual(defaulted({}), {
    containers: [],
    restartPolicy: "Always",
    dnsPolicy: "ClusterFirst",
    schedulerName: "default-scheduler",
    terminationGracePeriodSeconds: 30,
    securityContext: {},
    enableServiceLinks: true,
  });
});

test("what is set stays, also zero and false", () => {
  const spec = defaulted({ restartPolicy: "Never", terminationGracePeriodSeconds: 0, enableServiceLinks: false });
  assert.equal(spec.restartPolicy, "Never");
  assert.equal(spec.terminationGracePeriodSeconds, 0);
  assert.equal(spec.enableServiceLinks, false);
});

test("a container's defaults", () => {
  assert.deepEqual(container({}), {
    name: "c",
    image: "i:1",
    imagePullPolicy: "IfNotPresent",
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
  });
  assert.equal(container({ image: "i" })?.imagePullPolicy, "Always");
});

test("init and ephemeral containers get them too", () => {
  const spec = defaulted({
    initContainers: [{ name: "i", image: "x" }],
    ephemeralContainers: [{ name: "e", image: "x" }],
  });
  assert.equal(spec.initContainers?.[0]?.imagePullPolicy, "Always");
  assert.equal(spec.ephemeralContainers?.[0]?.terminationMessagePolicy, "File");
});

test("ports are TCP, and on the host network they are host ports", () => {
  const ports = [{ containerPort: 80 }, { containerPort: 53, protocol: "UDP", hostPort: 53 }];
  assert.deepEqual(container({ ports })?.ports, [
    { containerPort: 80, protocol: "TCP" },
    { containerPort: 53, protocol: "UDP", hostPort: 53 },
  ]);
  assert.deepEqual(container({ ports }, { hostNetwork: true })?.ports?.[0], {
    containerPort: 80,
    protocol: "TCP",
    hostPort: 80,
  });
});

test("a missing request is the limit, per resource, and amounts are rounded up to milli", () => {
  const resources = { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "100u" } };
  assert.deepEqual(container({ resources })?.resources, {
    limits: { cpu: "1", memory: "1Gi" },
    requests: { cpu: "1m", memory: "1Gi" },
  });
  assert.deepEqual(container({ resources: {} })?.resources, {});
});

test("a missing pod-level request is what the containers ask for, else the limit", () => {
  const spec = defaulted({
    containers: [{ name: "c", image: "i", resources: { requests: { cpu: "250m" } } }],
    resources: { limits: { cpu: "2", memory: "1Gi" } },
  });
  assert.deepEqual(spec.resources?.requests, { cpu: "250m", memory: "1Gi" });
});

test("probes and hooks", () => {
  const probe = container({
    livenessProbe: { httpGet: { port: 80 } },
    readinessProbe: { grpc: { port: 1 }, periodSeconds: 5 },
  });
  assert.deepEqual(probe?.livenessProbe, {
    httpGet: { port: 80, path: "/", scheme: "HTTP" },
    timeoutSeconds: 1,
    periodSeconds: 10,
    successThreshold: 1,
    failureThreshold: 3,
  });
  assert.equal(probe?.readinessProbe?.periodSeconds, 5);
  assert.equal(probe?.readinessProbe?.grpc?.service, "");
  const hook = container({
    lifecycle: { preStop: { httpGet: { port: 80 } }, postStart: { exec: { command: ["x"] } } },
  });
  assert.deepEqual(hook?.lifecycle?.preStop, { httpGet: { port: 80, path: "/", scheme: "HTTP" } });
});

test("volumes", () => {
  const volumes = defaulted({
    volumes: [
      { name: "none" },
      { name: "host", hostPath: { path: "/x" } },
      { name: "secret", secret: { secretName: "s" } },
      { name: "map", configMap: { name: "m", defaultMode: 0o400 } },
      {
        name: "all",
        projected: {
          sources: [
            { serviceAccountToken: { path: "t" } },
            { downwardAPI: { items: [{ path: "n", fieldRef: { fieldPath: "metadata.name" } }] } },
          ],
        },
      },
    ],
  }).volumes;
  assert.deepEqual(volumes, [
    { name: "none", emptyDir: {} },
    { name: "host", hostPath: { path: "/x", type: "" } },
    { name: "secret", secret: { secretName: "s", defaultMode: 0o644 } },
    { name: "map", configMap: { name: "m", defaultMode: 0o400 } },
    {
      name: "all",
      projected: {
        defaultMode: 0o644,
        sources: [
          { serviceAccountToken: { path: "t", expirationSeconds: 3600 } },
          { downwardAPI: { items: [{ path: "n", fieldRef: { fieldPath: "metadata.name", apiVersion: "v1" } }] } },
        ],
      },
    },
  ]);
});

test("variables from fields name the version", () => {
  const env = [
    { name: "N", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    { name: "V", value: "x" },
  ];
  assert.deepEqual(container({ env })?.env, [
    { name: "N", valueFrom: { fieldRef: { fieldPath: "metadata.name", apiVersion: "v1" } } },
    { name: "V", value: "x" },
  ]);
});

test("defaulting twice changes nothing, and the input is not touched", () => {
  const pod: Pod = {
    metadata: { name: "p" },
    spec: {
      hostNetwork: true,
      containers: [{ name: "c", image: "i", ports: [{ containerPort: 1 }], resources: { limits: { cpu: "1" } } }],
      volumes: [{ name: "v" }],
    },
  };
  const before = structuredClone(pod);
  const once = defaultPod(pod);
  assert.deepEqual(defaultPod(once), once);
  assert.deepEqual(pod, before);
});
