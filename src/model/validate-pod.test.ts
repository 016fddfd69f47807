import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, ObjectMeta, Pod, PodSpec } from "./generated/types.ts";
import { defaultPod } from "./pod-defaults.ts";
import { formatProblem } from "./problem.ts";
import { validatePod } from "./validate-pod.ts";

function problemsOf(spec: Partial<PodSpec>, metadata: ObjectMeta = { name: "p", namespace: "default" }): string[] {
  const pod: Pod = { metadata, spec: { containers: [{ name: "c", image: "i" }], ...spec } };
  return validatePod(defaultPod(pod)).map(formatProblem);
}

function containerProblems(fields: Partial<Container>, spec: Partial<PodSpec> = {}): string[] {
  return problemsOf({ ...spec, containers: [{ name: "c", image: "i", ...fields }] });
}

test("a small pod is fine", () => assert.deepEqual(problemsOf({}), []));

test("a pod with most supported fields is fine", () => {
  const spec: Partial<PodSpec> = {
    restartPolicy: "OnFailure",
    hostname: "h",
    subdomain: "s",
    dnsPolicy: "None",
    dnsConfig: {
      nameservers: ["10.0.0.10", "fd00::1"],
      searches: ["a.b", "."],
      options: [{ name: "ndots", value: "2" }],
    },
    hostAliases: [{ ip: "127.0.0.1", hostnames: ["foo.local"] }],
    tolerations: [{ operator: "Exists" }, { key: "a", value: "b", effect: "NoExecute" }],
    securityContext: {
      runAsUser: 1000,
      supplementalGroups: [1],
      sysctls: [{ name: "net.core.somaxconn", value: "1" }],
    },
    volumes: [
      { name: "v", emptyDir: { medium: "Memory", sizeLimit: "1Gi" } },
      { name: "h", hostPath: { path: "/tmp/..x" } },
    ],
    initContainers: [{ name: "i", image: "x" }],
    containers: [
      {
        name: "c",
        image: "i",
        env: [
          { name: "A", value: "1" },
          { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.labels['app.io/x']" } } },
          { name: "C", valueFrom: { resourceFieldRef: { resource: "limits.memory" } } },
        ],
        ports: [{ containerPort: 80, hostPort: 8080, name: "http", hostIP: "127.0.0.1" }],
        resources: { requests: { cpu: "1" }, limits: { cpu: "2", "example.com/gpu": "1" } },
        volumeMounts: [
          { name: "v", mountPath: "/v" },
          { name: "h", mountPath: "/h", readOnly: true },
        ],
        livenessProbe: { exec: { command: ["x"] } },
        securityContext: {
          capabilities: { add: ["NET_ADMIN"] },
          seccompProfile: { type: "Localhost", localhostProfile: "a/b.json" },
        },
      },
    ],
  };
  assert.deepEqual(problemsOf(spec), []);
});

const metadataCases: [ObjectMeta, string][] = [
  [{}, "metadata.name: is required; name the pod"],
  [{ name: "Web" }, 'metadata.name: is not a valid pod name ("Web")'],
  [{ name: "a/../b" }, "metadata.name: is not a valid pod name"],
  [{ name: "p", namespace: ".." }, "metadata.namespace: is not a valid namespace"],
  [{ name: "p", uid: "../../etc" }, "metadata.uid: is not usable as a UID"],
  [{ name: "p", labels: { "a b": "c" } }, 'metadata.labels: has an invalid key ("a b")'],
  [{ name: "p", labels: { a: "b c" } }, 'metadata.labels.a: is not a valid label value ("b c")'],
  [{ name: "p", annotations: { "a b": "" } }, "metadata.annotations: has an invalid key"],
  [{ name: "p", annotations: { a: "x".repeat(300_000) } }, "metadata.annotations: are too large"],
];
for (const [metadata, want] of metadataCases) {
  test(want.slice(0, 60), () => {
    const [only, ...more] = problemsOf({}, metadata);
    assert.ok(only?.startsWith(want), only);
    assert.deepEqual(more, []);
  });
}

const specCases: [Partial<PodSpec>, string][] = [
  [{ containers: [] }, "spec.containers: is required"],
  [
    { restartPolicy: "Sometimes" },
    'spec.restartPolicy: is not a supported value ("Sometimes"); write one of Always, OnFailure, Never',
  ],
  [{ terminationGracePeriodSeconds: -1 }, "spec.terminationGracePeriodSeconds: is out of range (-1); write 0 or more"],
  [{ activeDeadlineSeconds: 0 }, "spec.activeDeadlineSeconds: is out of range (0)"],
  [{ hostname: "A_b" }, "spec.hostname: is not a valid host name"],
  [{ subdomain: "a.b" }, "spec.subdomain: is not a valid host name"],
  [{ serviceAccountName: "a b" }, "spec.serviceAccountName: is not a valid name"],
  [{ dnsPolicy: "Cluster" }, "spec.dnsPolicy: is not a supported value"],
  [{ dnsPolicy: "None" }, "spec.dnsConfig.nameservers: is required when dnsPolicy is None"],
  [{ dnsConfig: { nameservers: ["dns"] } }, "spec.dnsConfig.nameservers[0]: is not an IP address"],
  [
    { dnsConfig: { nameservers: ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"] } },
    "spec.dnsConfig.nameservers: has too many",
  ],
  [{ dnsConfig: { searches: ["a b"] } }, "spec.dnsConfig.searches[0]: is not a domain"],
  [{ dnsConfig: { options: [{}] } }, "spec.dnsConfig.options[0].name: is required"],
  [{ hostAliases: [{ ip: "x" }] }, "spec.hostAliases[0].ip: is not an IP address"],
  [
    { hostAliases: [{ ip: "::1", hostnames: ["a\n1.2.3.4 b"] }] },
    "spec.hostAliases[0].hostnames[0]: is not a valid host name",
  ],
  [{ tolerations: [{ operator: "Exists", value: "x" }] }, "spec.tolerations[0].value: must be empty"],
  [{ tolerations: [{ effect: "NoExecute" }] }, "spec.tolerations[0].operator: must be Exists"],
  [{ nodeSelector: { a: "b c" } }, "spec.nodeSelector.a: is not a valid label value"],
  [{ hostPID: true, shareProcessNamespace: true }, "spec.shareProcessNamespace: cannot be set together with hostPID"],
  [{ securityContext: { runAsUser: -1 } }, "spec.securityContext.runAsUser: is out of range (-1)"],
  [{ securityContext: { supplementalGroups: [1, -1] } }, "spec.securityContext.supplementalGroups[1]: is out of range"],
  [
    { securityContext: { sysctls: [{ name: "a b", value: "" }] } },
    "spec.securityContext.sysctls[0].name: is not a valid sysctl",
  ],
  [
    { hostNetwork: true, securityContext: { sysctls: [{ name: "net.ipv4.ip_forward", value: "1" }] } },
    "spec.securityContext.sysctls[0].name: would change the node",
  ],
  [
    { securityContext: { seccompProfile: { type: "Localhost" } } },
    "spec.securityContext.seccompProfile.localhostProfile: is required",
  ],
  [
    { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "../x" } } },
    "spec.securityContext.seccompProfile.localhostProfile: leaves the seccomp directory",
  ],
  [{ volumes: [{ name: "V" }] }, "spec.volumes[0].name: is not a valid volume name"],
  [{ volumes: [{ name: "v" }, { name: "v" }] }, "spec.volumes[1].name: is used twice"],
  [
    { volumes: [{ name: "v", emptyDir: {}, hostPath: { path: "/x" } }] },
    "spec.volumes[0]: must have exactly one kind of volume",
  ],
  [{ volumes: [{ name: "v", hostPath: { path: "/a/../b" } }] }, "spec.volumes[0].hostPath.path: must not contain .."],
  [{ volumes: [{ name: "v", configMap: {} }] }, "spec.volumes[0].configMap.name: is required"],
  [{ volumes: [{ name: "v", secret: {} }] }, "spec.volumes[0].secret.secretName: is required"],
  [
    { volumes: [{ name: "v", secret: { secretName: "s", defaultMode: 0o1000 } }] },
    "spec.volumes[0].secret.defaultMode: is no file mode",
  ],
  [
    { volumes: [{ name: "v", configMap: { name: "c", items: [{ key: "k", path: "a/../../b" }] } }] },
    'spec.volumes[0].configMap.items[0].path: must not contain ".."',
  ],
  [
    { volumes: [{ name: "v", configMap: { name: "c", items: [{ key: "k", path: "..data" }] } }] },
    'spec.volumes[0].configMap.items[0].path: must not begin with ".."',
  ],
  [
    { volumes: [{ name: "v", downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "status.podIP" } }] } }] },
    "spec.volumes[0].downwardAPI.items[0].fieldRef.fieldPath: cannot be shown in a file",
  ],
  [
    { volumes: [{ name: "v", downwardAPI: { items: [{ path: "p", resourceFieldRef: { resource: "limits.cpu" } }] } }] },
    "spec.volumes[0].downwardAPI.items[0].resourceFieldRef.containerName: is required",
  ],
  [
    { volumes: [{ name: "v", projected: { sources: [{}] } }] },
    "spec.volumes[0].projected.sources[0]: must have exactly one source",
  ],
  [
    { volumes: [{ name: "v", projected: { sources: [{ serviceAccountToken: { path: "/t" } }] } }] },
    "spec.volumes[0].projected.sources[0].serviceAccountToken.path: must be relative",
  ],
  [{ volumes: [{ name: "v", hostPath: { path: "" } }] }, "spec.volumes[0].hostPath.path: is required"],
  [{ volumes: [{ name: "v", hostPath: { path: "a" } }] }, "spec.volumes[0].hostPath.path: must be absolute"],
  [
    { volumes: [{ name: "v", hostPath: { path: "/a", type: "Dir" } }] },
    "spec.volumes[0].hostPath.type: is not a supported value",
  ],
  [
    { volumes: [{ name: "v", emptyDir: { medium: "Disk" } }] },
    "spec.volumes[0].emptyDir.medium: is not a supported value",
  ],
  [{ volumes: [{ name: "v", emptyDir: { sizeLimit: "-1" } }] }, "spec.volumes[0].emptyDir.sizeLimit: is negative"],
  [{ initContainers: [{ name: "c", image: "i" }] }, "spec.initContainers[0].name: is used twice"],
  [{ initContainers: [{ name: "i", image: "i", lifecycle: {} }] }, "spec.initContainers[0].lifecycle: is not allowed"],
];
for (const [spec, want] of specCases) {
  test(want.slice(0, 70), () => {
    const [only, ...more] = problemsOf(spec);
    assert.ok(only?.startsWith(want), only);
    assert.deepEqual(more, []);
  });
}

const containerCases: [Partial<Container>, string][] = [
  [{ name: "a_b" }, "spec.containers[0].name: is not a valid container name"],
  [{ image: "" }, "spec.containers[0].image: is required"],
  [{ image: " nginx" }, "spec.containers[0].image: has blanks around it"],
  [{ imagePullPolicy: "Maybe" }, "spec.containers[0].imagePullPolicy: is not a supported value"],
  [{ terminationMessagePolicy: "X" }, "spec.containers[0].terminationMessagePolicy: is not a supported value"],
  [{ ports: [{ containerPort: 0 }] }, "spec.containers[0].ports[0].containerPort: is out of range (0)"],
  [{ ports: [{ containerPort: 65536 }] }, "spec.containers[0].ports[0].containerPort: is out of range"],
  [{ ports: [{ containerPort: 1, hostPort: -1 }] }, "spec.containers[0].ports[0].hostPort: is out of range"],
  [
    { ports: [{ containerPort: 1, protocol: "tcp" }] },
    "spec.containers[0].ports[0].protocol: is not a supported value",
  ],
  [{ ports: [{ containerPort: 1, name: "HTTP" }] }, "spec.containers[0].ports[0].name: is not a valid port name"],
  [{ ports: [{ containerPort: 1, hostIP: "x" }] }, "spec.containers[0].ports[0].hostIP: is not an IP address"],
  [
    {
      ports: [
        { containerPort: 1, name: "a" },
        { containerPort: 2, name: "a" },
      ],
    },
    "spec.containers[0].ports[1].name: is used twice",
  ],
  [
    {
      ports: [
        { containerPort: 1, hostPort: 9 },
        { containerPort: 2, hostPort: 9 },
      ],
    },
    "spec.containers[0].ports[1].hostPort: is used twice (9); spec.containers[0].ports[0] uses it too",
  ],
  [{ env: [{ name: "A=B" }] }, 'spec.containers[0].env[0].name: is not a valid variable name ("A=B")'],
  [{ env: [{ name: "A", valueFrom: {} }] }, "spec.containers[0].env[0].valueFrom: must have exactly one source"],
  [
    { env: [{ name: "A", value: "secret", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }] },
    "spec.containers[0].env[0].valueFrom: cannot stand beside value; keep",
  ],
  [
    { env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "spec.containers" } } }] },
    "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: is not a field that can be shown",
  ],
  [
    { env: [{ name: "A", valueFrom: { resourceFieldRef: { resource: "cpu" } } }] },
    "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: cannot be shown",
  ],
  [
    { resources: { requests: { cpu: "2" }, limits: { cpu: "1" } } },
    'spec.containers[0].resources.requests.cpu: is more than the limit 1 ("2")',
  ],
  [{ resources: { limits: { cpu: "-1" } } }, "spec.containers[0].resources.limits.cpu: is negative"],
  [
    { resources: { requests: { gpu: "1" }, limits: { gpu: "1" } } },
    "spec.containers[0].resources.limits.gpu: is not a resource",
  ],
  [{ resources: { requests: { "a.b/c": "1" } } }, "spec.containers[0].resources.requests.a.b/c: needs a limit"],
  [
    { resources: { requests: { "hugepages-2Mi": "2Mi" }, limits: { "hugepages-2Mi": "4Mi" } } },
    "spec.containers[0].resources.requests.hugepages-2Mi: must equal the limit",
  ],
  [
    { volumeMounts: [{ name: "w", mountPath: "/x" }] },
    'spec.containers[0].volumeMounts[0].name: names no volume of the pod ("w"); the pod has v',
  ],
  [
    { volumeMounts: [{ name: "v", mountPath: "x" }] },
    "spec.containers[0].volumeMounts[0].mountPath: must be an absolute path",
  ],
  [
    {
      volumeMounts: [
        { name: "v", mountPath: "/x" },
        { name: "v", mountPath: "/x" },
      ],
    },
    "spec.containers[0].volumeMounts[1].mountPath: is used twice",
  ],
  [
    { volumeMounts: [{ name: "v", mountPath: "/x", mountPropagation: "Bidirectional" }] },
    "spec.containers[0].volumeMounts[0].mountPropagation: needs a privileged container",
  ],
  [
    { volumeMounts: [{ name: "v", mountPath: "/x", subPath: "../y" }] },
    "spec.containers[0].volumeMounts[0].subPath: leaves the volume",
  ],
  [{ securityContext: { runAsGroup: -5 } }, "spec.containers[0].securityContext.runAsGroup: is out of range"],
  [
    { securityContext: { procMount: "None" } },
    "spec.containers[0].securityContext.procMount: is not a supported value",
  ],
  [
    { securityContext: { privileged: true, allowPrivilegeEscalation: false } },
    "spec.containers[0].securityContext.allowPrivilegeEscalation: cannot be false together with privileged",
  ],
  [{ livenessProbe: {} }, "spec.containers[0].livenessProbe: must specify a handler type"],
  [
    { startupProbe: { tcpSocket: { port: 1 }, successThreshold: 2 } },
    "spec.containers[0].startupProbe.successThreshold: must be 1",
  ],
  [
    { readinessProbe: { tcpSocket: { port: 1 }, periodSeconds: -1 } },
    "spec.containers[0].readinessProbe.periodSeconds: is out of range",
  ],
];
for (const [fields, want] of containerCases) {
  test(want.slice(0, 90), () => {
    const found = containerProblems(fields, { volumes: [{ name: "v" }] });
    assert.ok(found[0]?.startsWith(want), found[0]);
  });
}

test("on the host network the host port is the container's", () => {
  const found = containerProblems({ ports: [{ containerPort: 1, hostPort: 2 }] }, { hostNetwork: true });
  assert.equal(found.length, 1);
  assert.match(found[0] ?? "", /hostPort: must be containerPort on the host network \(2\)/);
});

test("all problems are told at once", () => {
  const found = problemsOf(
    { restartPolicy: "x", containers: [{ name: "A" }, { name: "b", image: "i", imagePullPolicy: "y" }] },
    {},
  );
  assert.equal(found.length, 5);
});
