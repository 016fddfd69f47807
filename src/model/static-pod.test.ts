import assert from "node:assert/strict";
import { test } from "node:test";
import { apiReferences } from "./api-references.ts";
import type { Pod, PodSpec } from "./generated/types.ts";
import { describePod, isCriticalPod, isMirrorPod, isNodeCriticalPod, isStaticPod, podIdentity } from "./pod-facts.ts";
import { type StaticPodOrigin, staticPodUid, toStaticPod } from "./static-pod.ts";

const origin = { source: "file", location: "/etc/pods/web.yaml", nodeName: "Node1" } as const;
const pod: Pod = { metadata: { name: "web" }, spec: { containers: [{ name: "c", image: "i" }] } };

const uidOf = (content: Pod, from: StaticPodOrigin = origin): string => staticPodUid({ content, known: content }, from);

/** UIDs that a kubelet v1.36.3 gave to pods of these manifests. A changed value restarts static pods at an upgrade. */
const kubernetesUids: { name: string; uid: string; content: Pod }[] = [
  {
    name: "a",
    uid: "c011dee18d13d75709c4a5d7313e608a",
    content: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "a", labels: { tier: "x", app: "yy" }, annotations: { k: "v" } },
      spec: {
        hostNetwork: true,
        priorityClassName: "system-node-critical",
        containers: [
          {
            name: "main",
            image: "busybox",
            command: ["sleep", "1"],
            resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "1Gi" } },
            livenessProbe: { httpGet: { path: "/x", port: 80, scheme: "HTTPS" }, failureThreshold: 8 },
            volumeMounts: [{ name: "d", mountPath: "/d", readOnly: true }],
          },
        ],
        volumes: [
          { name: "d", hostPath: { path: "/d", type: "DirectoryOrCreate" } },
          { name: "e", emptyDir: { sizeLimit: "5Mi" } },
        ],
      },
    },
  },
  {
    name: "b",
    uid: "76186f534ce09171c23a3d50101b4f55",
    content: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "b", namespace: "kube-system", finalizers: ["a/b"] },
      spec: {
        serviceAccount: "me",
        shareProcessNamespace: true,
        securityContext: {
          runAsUser: 5,
          seccompProfile: { type: "RuntimeDefault" },
          sysctls: [{ name: "a", value: "b" }],
        },
        tolerations: [{ operator: "Exists" }],
        nodeSelector: {},
        initContainers: [
          {
            name: "i",
            image: "a:1",
            resources: { limits: { cpu: "0.5", memory: "100M" } },
            restartPolicy: "Always",
            env: [
              { name: "A", value: "" },
              { name: "B", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
            ],
          },
        ],
        containers: [
          {
            name: "main",
            image: "x/y:v1",
            args: [],
            ports: [
              { containerPort: 80, name: "http" },
              { containerPort: 53, protocol: "UDP", hostPort: 53 },
            ],
            resources: {
              requests: { cpu: "1", memory: "1000" },
              limits: { cpu: "1500m", memory: "64Mi", "ephemeral-storage": "10Gi" },
            },
            readinessProbe: { httpGet: { port: "http" }, timeoutSeconds: 15 },
            startupProbe: { grpc: { port: 99 } },
            livenessProbe: { exec: { command: ["a", "b c"] } },
            lifecycle: { preStop: { httpGet: { port: 9 } }, postStart: { exec: { command: ["x"] } } },
            securityContext: {
              capabilities: { add: ["NET_ADMIN", "SYS_TIME"], drop: ["ALL"] },
              privileged: true,
              readOnlyRootFilesystem: false,
            },
            volumeMounts: [{ name: "c", mountPath: "/c", subPath: "z" }],
            envFrom: [{ configMapRef: { name: "q" }, prefix: "P_" }],
          },
        ],
        volumes: [
          { name: "c", hostPath: { path: "/c" } },
          {
            name: "p",
            projected: {
              sources: [{ downwardAPI: { items: [{ path: "l", fieldRef: { fieldPath: "metadata.labels" } }] } }],
            },
          },
          { name: "t" },
          {
            name: "s",
            downwardAPI: {
              items: [
                { path: "c", resourceFieldRef: { containerName: "main", resource: "limits.cpu", divisor: "1m" } },
              ],
            },
          },
        ],
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "In", values: ["b"] }] }],
            },
          },
        },
        dnsConfig: { options: [{ name: "ndots", value: "2" }] },
        hostAliases: [{ ip: "1.2.3.4", hostnames: ["a", "b"] }],
      },
    },
  },
];
for (const { name, uid, content } of kubernetesUids) {
  test(`the UID of manifest ${name} is the one that Kubernetes computes`, () => {
    const location = `/etc/kubernetes/manifests/${name}.yaml`;
    assert.equal(uidOf(content, { source: "file", location, nodeName: "node-a" }), uid);
  });
}

test("the UID does not depend on the order of keys", () => {
  const turned = { spec: { containers: [{ image: "i", name: "c" }] }, metadata: { name: "web" } };
  assert.equal(uidOf(turned), uidOf(pod));
});

test("content, node, place and kind of place each change the UID", () => {
  const uids = new Set([
    uidOf(pod),
    uidOf({ ...pod, metadata: { name: "web2" } }),
    uidOf(pod, { ...origin, nodeName: "node2" }),
    uidOf(pod, { ...origin, location: "/etc/pods/web2.yaml" }),
    uidOf(pod, { ...origin, source: "http" }),
  ]);
  assert.equal(uids.size, 5);
});

const ownKinds: { name: string; content: Pod; known?: Pod }[] = [
  { name: "a field that this version does not know", content: { ...pod, future: 1 } as Pod, known: pod },
  { name: "a time", content: { ...pod, metadata: { name: "web", creationTimestamp: "2026-01-01T00:00:00Z" } } },
  {
    name: "a quantity below a thousandth",
    content: { ...pod, spec: { containers: [{ name: "c", image: "i", resources: { limits: { cpu: "1u" } } }] } },
  },
];
for (const { name, content, known = content } of ownKinds) {
  test(`a manifest with ${name} has a UID too, another one than without`, () => {
    const uid = staticPodUid({ content, known }, origin);
    assert.match(uid, /^[0-9a-f]{32}$/);
    assert.notEqual(uid, uidOf(pod));
  });
}

test("a static pod has the node's suffix, a namespace, a hash and a toleration", () => {
  assert.deepEqual(toStaticPod(pod, "u1", origin), {
    metadata: {
      name: "web-node1",
      namespace: "default",
      uid: "u1",
      annotations: { "kubernetes.io/config.hash": "u1", "kubernetes.io/config.source": "file" },
    },
    spec: {
      containers: [{ name: "c", image: "i" }],
      nodeName: "Node1",
      tolerations: [{ operator: "Exists", effect: "NoExecute" }],
    },
    status: { phase: "Pending" },
  });
});

test("a pod of a URL gets no toleration", () => {
  const made = toStaticPod(pod, "u1", { ...origin, source: "http" });
  assert.equal(made.spec.tolerations, undefined);
  assert.equal(made.metadata.annotations?.["kubernetes.io/config.source"], "http");
});

test("a given UID, namespace, annotations and tolerations stay", () => {
  const given: Pod = {
    metadata: { name: "web", namespace: "kube-system", uid: "mine", annotations: { a: "b" } },
    spec: { containers: [], tolerations: [{ key: "x", operator: "Exists" }] },
  };
  const made = toStaticPod(given, "u1", origin);
  assert.equal(made.metadata.uid, "mine");
  assert.equal(made.metadata.namespace, "kube-system");
  assert.equal(made.metadata.annotations?.["kubernetes.io/config.hash"], "mine");
  assert.equal(made.metadata.annotations?.a, "b");
  assert.equal(made.spec.tolerations?.length, 2);
});

test("a manifest cannot claim to be a mirror, deleted or finished", () => {
  const claims: Pod = {
    metadata: {
      name: "web",
      deletionTimestamp: "2026-01-01T00:00:00Z",
      deletionGracePeriodSeconds: 1,
      annotations: { "kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "api" },
    },
    spec: { containers: [] },
    status: { phase: "Succeeded" },
  };
  const made = toStaticPod(claims, "u1", origin);
  assert.equal(made.metadata.deletionTimestamp, undefined);
  assert.equal(isMirrorPod(made), false);
  assert.equal(isStaticPod(made), true);
  assert.deepEqual(made.status, { phase: "Pending" });
});

test("static pods are critical, node-critical only by their class", () => {
  const made = toStaticPod(pod, "u1", origin);
  assert.equal(isCriticalPod(made), true);
  assert.equal(isNodeCriticalPod(made), false);
  assert.equal(isCriticalPod(pod), false);
  assert.equal(isCriticalPod({ ...pod, spec: { ...pod.spec, priority: 2_000_000_000 } }), true);
});

test("identity", () => {
  assert.deepEqual(podIdentity(pod), { uid: "", name: "web", namespace: "" });
  assert.equal(describePod(toStaticPod(pod, "u1", origin)), "web-node1_default(u1)");
});

const references: [Partial<PodSpec>, string[]][] = [
  [{}, []],
  [{ serviceAccountName: "x" }, ["serviceaccounts"]],
  [{ imagePullSecrets: [{ name: "s" }] }, ["secrets"]],
  [{ volumes: [{ name: "v", secret: {} }] }, ["secrets (via secret volumes)"]],
  [{ volumes: [{ name: "v", projected: { sources: [{ configMap: {} }] } }] }, ["configmaps (via projected volumes)"]],
  [{ volumes: [{ name: "v", csi: { driver: "d" } }] }, ["csidrivers (via CSI volumes)"]],
  [{ volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }] }, ["persistentvolumeclaims"]],
  [{ resourceClaims: [{ name: "r" }] }, ["resourceclaims"]],
  [{ initContainers: [{ name: "i", envFrom: [{ configMapRef: { name: "m" } }] }] }, ["configmaps"]],
  [{ containers: [{ name: "c", env: [{ name: "A", valueFrom: { secretKeyRef: { key: "k" } } }] }] }, ["secrets"]],
  [
    {
      volumes: [
        { name: "v", hostPath: { path: "/" } },
        { name: "w", emptyDir: {} },
      ],
    },
    [],
  ],
];
for (const [spec, want] of references) {
  test(`${JSON.stringify(spec).slice(0, 70)} needs of the API server: ${want.join(", ") || "nothing"}`, () => {
    assert.deepEqual(apiReferences({ ...pod, spec: { ...pod.spec, ...spec } }), want);
  });
}
