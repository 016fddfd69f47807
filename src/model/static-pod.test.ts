import assert from "node:assert/strict";
import { test } from "node:test";
import { apiReferences } from "./api-references.ts";
import type { Pod, PodSpec } from "./generated/types.ts";
import { describePod, isCriticalPod, isMirrorPod, isNodeCriticalPod, isStaticPod, podIdentity } from "./pod-facts.ts";
import { staticPodUid, toStaticPod } from "./static-pod.ts";

const origin = { source: "file", location: "/etc/pods/web.yaml", nodeName: "Node1" } as const;
const pod: Pod = { metadata: { name: "web" }, spec: { containers: [{ name: "c", image: "i" }] } };

test("the UID has 32 hex digits and never changes for one content", () => {
  // A changed value here means that every static pod restarts at an upgrade.
  assert.equal(staticPodUid(pod, origin), "49e56e3f9a97d980441db83e13c28202");
});

test("the UID does not depend on the order of keys", () => {
  const turned = { spec: { containers: [{ image: "i", name: "c" }] }, metadata: { name: "web" } };
  assert.equal(staticPodUid(turned, origin), staticPodUid(pod, origin));
});

test("content, node, place and kind of place each change the UID", () => {
  const uids = new Set([
    staticPodUid(pod, origin),
    staticPodUid({ ...pod, metadata: { name: "web2" } }, origin),
    staticPodUid(pod, { ...origin, nodeName: "node2" }),
    staticPodUid(pod, { ...origin, location: "/etc/pods/web2.yaml" }),
    staticPodUid(pod, { ...origin, source: "http" }),
  ]);
  assert.equal(uids.size, 5);
});

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
