import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { schemas } from "./generated/schema.ts";
import type { Container, PodSpec } from "./generated/types.ts";
import { defaultPod } from "./pod-defaults.ts";
import { unsupportedFields } from "./pod-support.ts";
import { podSupportPage } from "./pod-support-page.ts";
import { supportRules } from "./pod-support-rules.ts";

function found(
  fields: Partial<Container>,
  spec: Partial<PodSpec> = {},
): { refused: readonly string[]; warned: readonly string[] } {
  const containers = [{ name: "c", image: "i", ...fields }];
  return unsupportedFields(defaultPod({ metadata: { name: "p" }, spec: { containers, ...spec } }));
}

test("a pod of supported fields is silent", () => {
  const fields: Partial<Container> = {
    command: ["a"],
    env: [{ name: "N", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
    ports: [{ containerPort: 80, hostPort: 80 }],
    livenessProbe: { exec: { command: ["a"] } },
    readinessProbe: { httpGet: { port: 80 } },
    startupProbe: { grpc: { port: 80 } },
    resources: { limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi" } },
    envFrom: [{ configMapRef: { name: "c" } }],
    volumeMounts: [
      { name: "v", mountPath: "/v", mountPropagation: "HostToContainer" },
      { name: "h", mountPath: "/h", subPath: "a", readOnly: true, recursiveReadOnly: "Enabled" },
    ],
    securityContext: {
      privileged: true,
      seccompProfile: { type: "Localhost", localhostProfile: "x" },
      appArmorProfile: { type: "Unconfined" },
    },
  };
  const spec: Partial<PodSpec> = {
    volumes: [
      { name: "v" },
      { name: "h", hostPath: { path: "/" } },
      { name: "e", emptyDir: { medium: "HugePages-2Mi" } },
      { name: "c", configMap: { name: "c", items: [{ key: "k", path: "p" }] } },
      { name: "s", secret: { secretName: "s", optional: true } },
      { name: "d", downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "metadata.name" } }] } },
      { name: "p", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } },
      { name: "i", image: { reference: "r" } },
      { name: "l", persistentVolumeClaim: { claimName: "c" } },
    ],
    hostNetwork: true,
    hostUsers: true,
    os: { name: "linux" },
    setHostnameAsFQDN: false,
    runtimeClassName: "",
    readinessGates: [],
    tolerations: [{ operator: "Exists" }],
    securityContext: {
      fsGroup: 1,
      fsGroupChangePolicy: "Always",
      supplementalGroups: [1],
      sysctls: [],
      supplementalGroupsPolicy: "Merge",
    },
    initContainers: [{ name: "i", image: "x" }],
  };
  assert.deepEqual(found(fields, spec), { refused: [], warned: [] });
});

const warned: [string, Partial<Container>, Partial<PodSpec>?][] = [
  [
    "spec.containers[0].securityContext.windowsOptions: only Linux pods run here: it does nothing",
    { securityContext: { windowsOptions: {} } },
  ],
];
for (const [want, fields, spec] of warned) {
  test(`warned of ${want}`, () => assert.deepEqual(found(fields, spec), { refused: [], warned: [want] }));
}

const refused: [string, Partial<Container>, Partial<PodSpec>?][] = [
  [
    "spec.volumes[0].rbd: this kind of volume was removed from Kubernetes; use the CSI driver rbd.csi.ceph.com",
    {},
    { volumes: [{ name: "v", rbd: { image: "i", monitors: [] } }] },
  ],
  [
    "spec.volumes[0].gitRepo: gitRepo volumes are disabled; clone into an emptyDir with an init container",
    {},
    { volumes: [{ name: "v", gitRepo: { repository: "r" } }] },
  ],
];
for (const [want, fields, spec] of refused) {
  test(`refused for ${want}`, () => assert.deepEqual(found(fields, spec), { refused: [want], warned: [] }));
}

test("devices are supported", () => {
  assert.deepEqual(found({ resources: { limits: { "example.com/gpu": "1" } } }).refused, []);
});

test("every field of these types has a rule, and every rule names a field that exists", () => {
  for (const [type, rules] of Object.entries(supportRules)) {
    assert.deepEqual(Object.keys(rules).sort(), Object.keys(schemas[type] ?? {}).sort(), type);
  }
});

test("docs/pod-support.md is what the table says", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/pod-support.md"), "utf8");
  assert.equal(page, podSupportPage(), "run node scripts/generate-docs.mjs");
});

test("docs/pod-support.md has every field of a pod and of its containers", () => {
  const page = podSupportPage();
  for (const type of [
    "PodSpec",
    "Container",
    "EphemeralContainer",
    "Volume",
    "SecurityContext",
    "PodSecurityContext",
  ]) {
    for (const field of Object.keys(schemas[type] ?? {}))
      assert.ok(page.includes(`| \`${field}\` |`), `${type}.${field}`);
  }
});
