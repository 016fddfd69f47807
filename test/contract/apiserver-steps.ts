import { APPLY_STEPS } from "./apiserver-applies.ts";
import { JOB_STEPS } from "./apiserver-jobs.ts";
import { SAMPLES } from "./apiserver-objects.ts";
import { PATCH_STEPS } from "./apiserver-patches.ts";
import type { Step } from "./apiserver-step.ts";

const core = "/api/v1/namespaces/suite";
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const STRATEGIC = "application/strategic-merge-patch+json";
const MERGE = "application/merge-patch+json";
const JSON_PATCH = "application/json-patch+json";
const APPLY = "application/apply-patch+yaml";

const names = Object.entries(SAMPLES);
const nameOf = (object: { readonly metadata: Readonly<Record<string, unknown>> }): string =>
  String(object.metadata.name);

const creations: readonly Step[] = names.map(([kind, { path, object }]) => ({
  name: `create ${kind}`,
  method: "POST",
  path: `${path}?fieldManager=suite`,
  body: object,
}));
const tables: readonly Step[] = names.map(([kind, { path, object }]) => ({
  name: `table ${kind}`,
  method: "GET",
  path: `${path}/${nameOf(object)}`,
  accept: TABLE,
}));
const repeats: readonly Step[] = names.map(([kind, { path, object }]) => ({
  name: `create ${kind} again`,
  method: "POST",
  path,
  body: object,
}));
const labels: readonly Step[] = names.map(([kind, { path, object }]) => ({
  name: `label ${kind}`,
  method: "PATCH",
  path: `${path}/${nameOf(object)}?fieldManager=labeler`,
  contentType: STRATEGIC,
  body: { metadata: { labels: { labelled: "yes" } } },
}));
const deletions: readonly Step[] = names.map(([kind, { path, object }]) => ({
  name: `delete ${kind}`,
  method: "DELETE",
  path: `${path}/${nameOf(object)}`,
  body: { kind: "DeleteOptions", apiVersion: "v1", propagationPolicy: "Background", gracePeriodSeconds: 0 },
}));

interface WithMeta {
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** What is asked of objects that are there. */
const uses: readonly Step[] = [
  { name: "list with a label", method: "GET", path: `${core}/configmaps?labelSelector=a%3Db` },
  { name: "list with a field", method: "GET", path: `${core}/pods?fieldSelector=spec.nodeName%3D,metadata.name%3Dpod` },
  { name: "list with an unknown field", method: "GET", path: `${core}/pods?fieldSelector=spec.foo%3D1` },
  {
    name: "list with an unknown field of a plain kind",
    method: "GET",
    path: `${core}/configmaps?fieldSelector=data%3D1`,
  },
  { name: "list with a broken label selector", method: "GET", path: `${core}/pods?labelSelector=a%3D%3D%3Db` },
  { name: "list as metadata", method: "GET", path: `${core}/configmaps?labelSelector=a%3Db`, accept: PARTIAL_LIST },
  { name: "get as metadata", method: "GET", path: `${core}/pods/pod`, accept: PARTIAL },
  { name: "get what is missing", method: "GET", path: `${core}/pods/missing` },
  { name: "get a missing deployment", method: "GET", path: "/apis/apps/v1/namespaces/suite/deployments/missing" },
  { name: "a resource that is not served", method: "GET", path: "/api/v1/foos" },
  { name: "a group that is not served", method: "GET", path: "/apis/example.com/v1/foos" },
  { name: "a method that is not allowed", method: "POST", path: `${core}/configmaps/cm`, body: {} },
  { name: "match without version", method: "GET", path: `${core}/pods?resourceVersionMatch=Exact` },
  { name: "broken continue token", method: "GET", path: `${core}/pods?continue=xxx` },
  { name: "broken version", method: "GET", path: `${core}/pods?resourceVersion=abc` },
  {
    name: "stale update",
    method: "PUT",
    path: `${core}/configmaps/cm`,
    from: {
      step: "create configMap",
      change: (answer: WithMeta) => ({ ...answer, metadata: { ...answer.metadata, resourceVersion: "1" } }),
    },
  },
  {
    name: "update with another uid",
    method: "PUT",
    path: `${core}/configmaps/cm`,
    body: { metadata: { name: "cm", uid: "another" }, data: {} },
  },
  { name: "update with another name", method: "PUT", path: `${core}/configmaps/cm`, body: { metadata: { name: "x" } } },
  {
    name: "update of what is missing",
    method: "PUT",
    path: `${core}/configmaps/none`,
    body: { metadata: { name: "none" } },
  },
  {
    name: "unconditional update",
    method: "PUT",
    path: `${core}/configmaps/cm?fieldManager=second`,
    body: { metadata: { name: "cm", labels: { a: "b" } }, data: { k: "v2", n: "1" } },
  },
  {
    name: "a lease without version",
    method: "PUT",
    path: "/apis/coordination.k8s.io/v1/namespaces/suite/leases/lease",
    body: { metadata: { name: "lease" }, spec: {} },
  },
  {
    name: "put creates a lease",
    method: "PUT",
    path: "/apis/coordination.k8s.io/v1/namespaces/suite/leases/fresh?fieldManager=suite",
    body: { metadata: { name: "fresh" }, spec: { holderIdentity: "x" } },
  },
  {
    name: "merge patch",
    method: "PATCH",
    path: `${core}/configmaps/cm?fieldManager=p`,
    contentType: MERGE,
    body: { data: { n: null } },
  },
  {
    name: "json patch",
    method: "PATCH",
    path: `${core}/configmaps/cm?fieldManager=p`,
    contentType: JSON_PATCH,
    body: [{ op: "add", path: "/data/j", value: "1" }],
  },
  {
    name: "json patch whose test fails",
    method: "PATCH",
    path: `${core}/configmaps/cm`,
    contentType: JSON_PATCH,
    body: [{ op: "test", path: "/data/j", value: "2" }],
  },
  {
    name: "a patch of an unknown type",
    method: "PATCH",
    path: `${core}/configmaps/cm`,
    contentType: "text/plain",
    body: {},
  },
  {
    name: "a patch that changes nothing",
    method: "PATCH",
    path: `${core}/configmaps/cm?fieldManager=z`,
    contentType: MERGE,
    body: {},
  },
  {
    name: "status patch of a pod",
    method: "PATCH",
    path: `${core}/pods/pod/status?fieldManager=kubelet`,
    contentType: STRATEGIC,
    body: {
      metadata: { labels: { viaStatus: "1" } },
      status: {
        phase: "Running",
        conditions: [{ type: "Ready", status: "True" }],
        containerStatuses: [
          { name: "web", ready: true, restartCount: 2, image: "nginx", imageID: "x", state: { running: {} } },
        ],
        podIP: "10.1.0.7",
        podIPs: [{ ip: "10.1.0.7" }],
      },
    },
  },
  { name: "table of a running pod", method: "GET", path: `${core}/pods`, accept: TABLE },
  {
    name: "status patch of a deployment",
    method: "PATCH",
    path: "/apis/apps/v1/namespaces/suite/deployments/web/status?fieldManager=kcm",
    contentType: MERGE,
    body: { spec: { replicas: 9 }, status: { replicas: 1, readyReplicas: 1, observedGeneration: 1 } },
  },
  {
    name: "a spec change counts",
    method: "PATCH",
    path: "/apis/apps/v1/namespaces/suite/deployments/web?fieldManager=kubectl",
    contentType: STRATEGIC,
    body: { spec: { template: { spec: { containers: [{ name: "web", image: "nginx:2" }] } } } },
  },
  { name: "scale", method: "GET", path: "/apis/apps/v1/namespaces/suite/deployments/web/scale" },
  {
    name: "scale up",
    method: "PATCH",
    path: "/apis/apps/v1/namespaces/suite/deployments/web/scale",
    contentType: MERGE,
    body: { spec: { replicas: 4 } },
  },
  {
    name: "apply creates",
    method: "PATCH",
    path: `${core}/configmaps/applied?fieldManager=one`,
    contentType: APPLY,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied" }, data: { a: "1", b: "1" } },
  },
  {
    name: "apply conflicts",
    method: "PATCH",
    path: `${core}/configmaps/applied?fieldManager=two`,
    contentType: APPLY,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied" }, data: { a: "2", b: "2" } },
  },
  {
    name: "apply with force",
    method: "PATCH",
    path: `${core}/configmaps/applied?fieldManager=two&force=true`,
    contentType: APPLY,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied" }, data: { a: "2" } },
  },
  {
    name: "apply removes what it no longer says",
    method: "PATCH",
    path: `${core}/configmaps/applied?fieldManager=one`,
    contentType: APPLY,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied" }, data: {} },
  },
  {
    name: "apply without a manager",
    method: "PATCH",
    path: `${core}/configmaps/applied`,
    contentType: APPLY,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied" } },
  },
  {
    name: "apply of an unknown field",
    method: "PATCH",
    path: `${core}/configmaps/applied?fieldManager=one`,
    contentType: APPLY,
    body: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "applied" }, foo: 1 },
  },
  {
    name: "apply to a pod",
    method: "PATCH",
    path: `${core}/pods/pod?fieldManager=one&force=true`,
    contentType: APPLY,
    body: {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "pod", annotations: { applied: "yes" } },
      spec: { containers: [{ name: "web", image: "nginx:3" }] },
    },
  },
  {
    name: "apply to a service",
    method: "PATCH",
    path: `${core}/services/svc?fieldManager=one&force=true`,
    contentType: APPLY,
    body: {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "svc" },
      spec: {
        ports: [
          { port: 80, name: "http" },
          { port: 81, name: "more" },
        ],
      },
    },
  },
  {
    name: "dry run of a create",
    method: "POST",
    path: `${core}/configmaps?dryRun=All&fieldManager=suite`,
    body: { metadata: { name: "dry" }, data: { a: "1" } },
  },
  { name: "the dry run left nothing", method: "GET", path: `${core}/configmaps/dry` },
  {
    name: "a dry run of another kind",
    method: "POST",
    path: `${core}/configmaps?dryRun=Some`,
    body: { metadata: { name: "dry" } },
  },
  {
    name: "dry run of a patch",
    method: "PATCH",
    path: `${core}/configmaps/cm?dryRun=All&fieldManager=suite`,
    contentType: MERGE,
    body: { data: { dry: "1" } },
  },
  {
    name: "delete with another uid",
    method: "DELETE",
    path: `${core}/configmaps/cm`,
    body: { preconditions: { uid: "x" } },
  },
  {
    name: "delete with a wrong policy",
    method: "DELETE",
    path: `${core}/configmaps/cm`,
    body: { propagationPolicy: "Some" },
  },
  {
    name: "orphan a deployment's pods",
    method: "DELETE",
    path: "/apis/apps/v1/namespaces/suite/deployments/web",
    body: { propagationPolicy: "Orphan" },
  },
  { name: "finalizers keep it", method: "GET", path: "/apis/apps/v1/namespaces/suite/deployments/web" },
  {
    name: "no finalizer is added to what is deleted",
    method: "PATCH",
    path: "/apis/apps/v1/namespaces/suite/deployments/web",
    contentType: MERGE,
    body: { metadata: { finalizers: ["orphan", "example.com/more"] } },
  },
  {
    name: "without finalizers it goes",
    method: "PATCH",
    path: "/apis/apps/v1/namespaces/suite/deployments/web",
    contentType: MERGE,
    body: { metadata: { finalizers: null } },
  },
  { name: "it is gone", method: "GET", path: "/apis/apps/v1/namespaces/suite/deployments/web" },
  {
    name: "bind a pod",
    method: "POST",
    path: `${core}/pods/pod/binding`,
    body: { apiVersion: "v1", kind: "Binding", metadata: { name: "pod" }, target: { kind: "Node", name: "node" } },
  },
  { name: "the pod is bound", method: "GET", path: `${core}/pods/pod` },
  {
    name: "bind it again",
    method: "POST",
    path: `${core}/pods/pod/binding`,
    body: { apiVersion: "v1", kind: "Binding", metadata: { name: "pod" }, target: { kind: "Node", name: "node" } },
  },
  {
    name: "an ephemeral container",
    method: "PATCH",
    path: `${core}/pods/pod/ephemeralcontainers?fieldManager=debug`,
    contentType: STRATEGIC,
    body: { spec: { ephemeralContainers: [{ name: "debug", image: "busybox", targetContainerName: "web" }] } },
  },
  {
    name: "resize",
    method: "PATCH",
    path: `${core}/pods/pod/resize?fieldManager=resizer`,
    contentType: STRATEGIC,
    body: { spec: { containers: [{ name: "web", resources: { limits: { cpu: "1" } } }] } },
  },
  { name: "graceful deletion", method: "DELETE", path: `${core}/pods/pod` },
  { name: "a shorter grace period", method: "DELETE", path: `${core}/pods/pod?gracePeriodSeconds=10` },
  { name: "a longer one changes nothing", method: "DELETE", path: `${core}/pods/pod?gracePeriodSeconds=60` },
  {
    name: "a token",
    method: "POST",
    path: `${core}/serviceaccounts/robot/token`,
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 60 } },
  },
  {
    name: "who am I",
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: { spec: { resourceAttributes: { verb: "get", resource: "pods" } } },
  },
  {
    name: "a namespace",
    method: "POST",
    path: "/api/v1/namespaces?fieldManager=suite",
    body: { metadata: { name: "other" } },
  },
  { name: "delete a namespace", method: "DELETE", path: "/api/v1/namespaces/other" },
  {
    name: "nothing is created in it",
    method: "POST",
    path: "/api/v1/namespaces/other/configmaps",
    body: { metadata: { name: "x" } },
  },
  {
    name: "nor in one that is not there",
    method: "POST",
    path: "/api/v1/namespaces/no/configmaps",
    body: { metadata: { name: "x" } },
  },
  { name: "the default namespace stays", method: "DELETE", path: "/api/v1/namespaces/default" },
];

/** Wrong objects: both servers must say the same about them. */
const wrong: readonly (readonly [string, string, unknown])[] = [
  ["a kind that does not fit", `${core}/configmaps`, { apiVersion: "v1", kind: "Secret", metadata: { name: "x" } }],
  [
    "a version that does not fit",
    `${core}/configmaps`,
    { apiVersion: "v2", kind: "ConfigMap", metadata: { name: "x" } },
  ],
  ["another namespace", `${core}/configmaps`, { metadata: { name: "x", namespace: "y" } }],
  ["no name", `${core}/configmaps`, { metadata: {} }],
  ["a name that is none", `${core}/configmaps`, { metadata: { name: "Not A Name" } }],
  ["a label that is none", `${core}/configmaps`, { metadata: { name: "x", labels: { "a b": "c d" } } }],
  ["a key that is none", `${core}/configmaps`, { metadata: { name: "x" }, data: { "a/b": "" } }],
  ["text where a map belongs", `${core}/configmaps`, { metadata: { name: "x" }, data: "text" }],
  ["a number where text belongs", `${core}/configmaps`, { metadata: { name: "x" }, data: { a: 1 } }],
  ["a tls secret without keys", `${core}/secrets`, { metadata: { name: "x" }, type: "kubernetes.io/tls" }],
  [
    "a service account that is not there",
    `${core}/pods`,
    { metadata: { name: "x" }, spec: { serviceAccountName: "no", containers: [{ name: "a", image: "b" }] } },
  ],
  [
    "a priority class that is not there",
    `${core}/pods`,
    { metadata: { name: "x" }, spec: { priorityClassName: "no", containers: [{ name: "a", image: "b" }] } },
  ],
  [
    "a runtime class that is not there",
    `${core}/pods`,
    { metadata: { name: "x" }, spec: { runtimeClassName: "no", containers: [{ name: "a", image: "b" }] } },
  ],
  ["a service without ports", `${core}/services`, { metadata: { name: "x" }, spec: {} }],
  [
    "a service with a port out of range",
    `${core}/services`,
    { metadata: { name: "x" }, spec: { ports: [{ port: 70_000 }] } },
  ],
  [
    "a deployment without anything",
    "/apis/apps/v1/namespaces/suite/deployments",
    { metadata: { name: "x" }, spec: {} },
  ],
  [
    "a deployment whose selector does not match",
    "/apis/apps/v1/namespaces/suite/deployments",
    {
      metadata: { name: "x" },
      spec: {
        selector: { matchLabels: { a: "b" } },
        template: { metadata: { labels: { c: "d" } }, spec: { containers: [{ name: "a", image: "b" }] } },
      },
    },
  ],
  [
    "a claim without size",
    `${core}/persistentvolumeclaims`,
    { metadata: { name: "x" }, spec: { accessModes: ["ReadWriteOnce"] } },
  ],
  [
    "a volume without source",
    "/api/v1/persistentvolumes",
    { metadata: { name: "x" }, spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"] } },
  ],
  [
    "a cron job without schedule",
    "/apis/batch/v1/namespaces/suite/cronjobs",
    {
      metadata: { name: "x" },
      spec: {
        schedule: "x",
        jobTemplate: {
          spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "a", image: "b" }] } } },
        },
      },
    },
  ],
  [
    "a job that always restarts",
    "/apis/batch/v1/namespaces/suite/jobs",
    { metadata: { name: "x" }, spec: { template: { spec: { containers: [{ name: "a", image: "b" }] } } } },
  ],
  ["a version on create", `${core}/configmaps`, { metadata: { name: "x", resourceVersion: "5" } }],
];

const refusals: readonly Step[] = [
  ...wrong.map(([name, path, body]): Step => ({ name: `refuses ${name}`, method: "POST", path, body })),
  {
    name: "refuses unknown fields when it is strict",
    method: "POST",
    path: `${core}/configmaps?fieldValidation=Strict`,
    body: { metadata: { name: "x", foo: 1 }, bar: 2 },
  },
];

/** The whole sequence. */
export const STEPS: readonly Step[] = [
  ...creations,
  ...repeats,
  ...tables,
  ...labels,
  ...uses,
  ...refusals,
  ...JOB_STEPS,
  ...PATCH_STEPS,
  ...APPLY_STEPS,
  ...deletions,
];
