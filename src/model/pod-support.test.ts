import assert from "node:assert/strict";
import { test } from "node:test";
import { schemas } from "./generated/schema.ts";
import type { Container, PodSpec } from "./generated/types.ts";
import { defaultPod } from "./pod-defaults.ts";
import { unsupportedFields } from "./pod-support.ts";
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
    resources: { limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "1Gi" } },
    volumeMounts: [{ name: "v", mountPath: "/v", mountPropagation: "HostToContainer" }],
    securityContext: {
      privileged: true,
      seccompProfile: { type: "Localhost", localhostProfile: "x" },
      appArmorProfile: { type: "Unconfined" },
    },
  };
  const spec: Partial<PodSpec> = {
    volumes: [{ name: "v" }, { name: "h", hostPath: { path: "/" } }],
    hostNetwork: true,
    hostUsers: true,
    os: { name: "linux" },
    setHostnameAsFQDN: false,
    runtimeClassName: "",
    readinessGates: [],
    tolerations: [{ operator: "Exists" }],
    securityContext: { supplementalGroups: [1], sysctls: [], supplementalGroupsPolicy: "Merge" },
    initContainers: [{ name: "i", image: "x" }],
  };
  assert.deepEqual(found(fields, spec), { refused: [], warned: [] });
});

const warned: [string, Partial<Container>, Partial<PodSpec>?][] = [
  ["spec.containers[0].livenessProbe: probes are not run yet", { livenessProbe: { exec: {} } }],
  ["spec.containers[0].lifecycle: lifecycle hooks are not run yet", { lifecycle: { preStop: { exec: {} } } }],
  ["spec.containers[0].envFrom: variables from ConfigMaps and Secrets are not set yet", { envFrom: [{}] }],
  ["spec.readinessGates: readiness gates are not looked at yet", {}, { readinessGates: [{ conditionType: "x" }] }],
  ["spec.securityContext.fsGroup: the group is not given to volumes yet", {}, { securityContext: { fsGroup: 0 } }],
  [
    "spec.volumes[0].emptyDir.sizeLimit: the size limit is not enforced yet",
    {},
    { volumes: [{ name: "v", emptyDir: { sizeLimit: "1" } }] },
  ],
  [
    "spec.containers[0].securityContext.windowsOptions: is not acted on yet",
    { securityContext: { windowsOptions: {} } },
  ],
];
for (const [want, fields, spec] of warned) {
  test(`warned of ${want}`, () => assert.deepEqual(found(fields, spec), { refused: [], warned: [want] }));
}

const refused: [string, Partial<Container>, Partial<PodSpec>?][] = [
  ["spec.volumes[0].secret: this kind of volume is not supported yet", {}, { volumes: [{ name: "v", secret: {} }] }],
  ["spec.hostUsers: user namespaces are not supported yet", {}, { hostUsers: false }],
  ["spec.runtimeClassName: runtime classes are not supported yet", {}, { runtimeClassName: "kata" }],
  [
    "spec.ephemeralContainers: ephemeral containers are not supported yet",
    {},
    { ephemeralContainers: [{ name: "e", image: "x" }] },
  ],
  ["spec.os: only linux pods run here", {}, { os: { name: "windows" } }],
  [
    "spec.containers[0].volumeMounts[0].subPath: subPath is not supported yet",
    { volumeMounts: [{ name: "v", mountPath: "/", subPath: "a" }] },
  ],
  [
    "spec.containers[0].env[0].valueFrom.secretKeyRef: variables from Secrets are not supported yet",
    { env: [{ name: "A", valueFrom: { secretKeyRef: { key: "k" } } }] },
  ],
  [
    "spec.initContainers[0].restartPolicy: a restart policy per container (sidecars included) is not supported yet",
    {},
    { initContainers: [{ name: "s", image: "x", restartPolicy: "Always" }] },
  ],
  [
    "spec.volumes[0].emptyDir.medium: memory of huge pages is not supported yet",
    {},
    { volumes: [{ name: "v", emptyDir: { medium: "HugePages-2Mi" } }] },
  ],
  [
    "spec.securityContext.supplementalGroupsPolicy: strict supplemental groups are not supported yet",
    {},
    { securityContext: { supplementalGroupsPolicy: "Strict" } },
  ],
];
for (const [want, fields, spec] of refused) {
  test(`refused for ${want}`, () => assert.deepEqual(found(fields, spec), { refused: [want], warned: [] }));
}

test("devices are refused on both sides", () => {
  assert.equal(found({ resources: { limits: { "example.com/gpu": "1" } } }).refused.length, 2);
});

test("every rule names a field that exists", () => {
  for (const [type, rules] of Object.entries(supportRules)) {
    for (const field of Object.keys(rules)) {
      assert.ok(field === "*" || schemas[type]?.[field] !== undefined, `${type}.${field}`);
    }
  }
});
