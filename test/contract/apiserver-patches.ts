import type { Step } from "./apiserver-step.ts";

const core = "/api/v1/namespaces/suite";
const POD = `${core}/pods/patched`;
const MAP = `${core}/configmaps/patched`;
const SERVICE = `${core}/services/patched`;
const DEPLOYMENT = "/apis/apps/v1/namespaces/suite/deployments/patched";
const TYPES = {
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

const pod = {
  metadata: { name: "patched", labels: { a: "1" }, finalizers: ["example.com/a", "example.com/b"] },
  spec: { containers: [{ name: "a", image: "x" }], tolerations: [{ key: "k", operator: "Exists" }] },
};
const service = {
  metadata: { name: "patched" },
  spec: { clusterIP: "None", ports: [1, 2, 3].map((port) => ({ name: `p${port}`, port })), selector: { a: "b" } },
};
const deployment = {
  metadata: { name: "patched" },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: "p" } },
    template: {
      metadata: { labels: { app: "p" } },
      spec: {
        containers: [
          { name: "one", image: "x", env: [1, 2, 3].map((n) => ({ name: `E${n}`, value: `${n}` })) },
          { name: "two", image: "y", ports: [{ containerPort: 80 }, { containerPort: 80, protocol: "UDP" }] },
        ],
        volumes: [{ name: "v", emptyDir: {} }],
      },
    },
  },
};

type PatchKind = keyof typeof TYPES;
const at =
  (path: string) =>
  (type: PatchKind, name: string, body: unknown): Step => ({
    name: `patch: ${name}`,
    method: "PATCH",
    path: `${path}?fieldManager=p`,
    contentType: TYPES[type],
    body,
  });
const [onPod, onMap, onService, onDeployment] = [POD, MAP, SERVICE, DEPLOYMENT].map(at) as [
  ReturnType<typeof at>,
  ReturnType<typeof at>,
  ReturnType<typeof at>,
  ReturnType<typeof at>,
];
const containers = (...all: unknown[]): object => ({ spec: { template: { spec: { containers: all } } } });
const inOne = (more: object): object => containers({ name: "one", ...more });

const strategic: readonly Step[] = [
  onDeployment("strategic", "an element of a list by its key", inOne({ env: [{ name: "E2", value: "two" }] })),
  onDeployment("strategic", "an element is deleted", inOne({ env: [{ name: "E1", $patch: "delete" }] })),
  onDeployment(
    "strategic",
    "an element that is not there is deleted",
    inOne({ env: [{ name: "E9", $patch: "delete" }] }),
  ),
  onDeployment(
    "strategic",
    "elements in an order",
    inOne({
      "$setElementOrder/env": [{ name: "E4" }, { name: "E3" }, { name: "E2" }],
      env: [{ name: "E4", value: "4" }],
    }),
  ),
  onDeployment(
    "strategic",
    "an order alone",
    inOne({ "$setElementOrder/env": [{ name: "E2" }, { name: "E3" }, { name: "E4" }] }),
  ),
  onDeployment(
    "strategic",
    "an order without an element that the patch has",
    inOne({
      "$setElementOrder/env": [{ name: "E2" }],
      env: [{ name: "E7", value: "7" }],
    }),
  ),
  onDeployment("strategic", "a list is replaced", inOne({ env: [{ $patch: "replace" }, { name: "N", value: "n" }] })),
  onDeployment("strategic", "an element without its key", containers({ image: "z" })),
  onDeployment("strategic", "an element that is no object", containers("z")),
  onDeployment("strategic", "a null element", containers(null)),
  onDeployment("strategic", "a list that is an object", {
    spec: { template: { spec: { containers: { name: "one" } } } },
  }),
  onDeployment("strategic", "an unknown directive", inOne({ $patch: "remove" })),
  onDeployment("strategic", "a directive of another type", inOne({ $patch: 1 })),
  onDeployment("strategic", "keys are retained", {
    spec: {
      template: { spec: { volumes: [{ name: "v", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } }] } },
    },
  }),
  onDeployment("strategic", "keys are retained that the patch does not name", {
    spec: { $retainKeys: ["replicas"], replicas: 3, paused: true },
  }),
  onDeployment("strategic", "retained keys of another type", { spec: { $retainKeys: "replicas" } }),
  onDeployment("strategic", "a strategy is replaced", {
    spec: { strategy: { $retainKeys: ["type"], type: "Recreate" } },
  }),
  onDeployment("strategic", "an object is replaced", {
    spec: { template: { metadata: { labels: { $patch: "replace", app: "p", b: "c" } } } },
  }),
  onDeployment("strategic", "an object is deleted", {
    spec: { template: { metadata: { annotations: { $patch: "delete" } } } },
  }),
  onDeployment(
    "strategic",
    "two elements of one key",
    inOne({
      env: [
        { name: "D", value: "1" },
        { name: "D", value: "2" },
      ],
    }),
  ),
  onDeployment(
    "strategic",
    "ports of the same number",
    containers({ name: "two", ports: [{ containerPort: 80, name: "x" }] }),
  ),
  onDeployment("strategic", "a null", { spec: { template: { spec: { volumes: null } } } }),
  onService("strategic", "ports by their number", {
    spec: {
      ports: [
        { port: 2, name: "two" },
        { port: 9, name: "nine" },
      ],
    },
  }),
  onService("strategic", "a port is deleted", { spec: { ports: [{ port: 1, $patch: "delete" }] } }),
  onService("strategic", "ports in an order", {
    spec: { "$setElementOrder/ports": [{ port: 9 }, { port: 3 }, { port: 2 }], ports: [{ port: 3, name: "three" }] },
  }),
  onPod("strategic", "values of a plain list are deleted", {
    metadata: { "$deleteFromPrimitiveList/finalizers": ["example.com/a", "nothing"] },
  }),
  onPod("strategic", "values are added to a plain list", {
    metadata: {
      finalizers: ["example.com/c", "example.com/b"],
      "$setElementOrder/finalizers": ["example.com/c", "example.com/b"],
    },
  }),
  onPod("strategic", "values are deleted of what is no list", {
    metadata: { "$deleteFromPrimitiveList/labels": ["a"] },
  }),
  onPod("strategic", "deleted values that are none", {
    metadata: { "$deleteFromPrimitiveList/finalizers": "example.com/b" },
  }),
  onPod("strategic", "no object", ["x"]),
  onPod("strategic", "no change", {}),
];

const json: readonly Step[] = [
  onMap("json", "json: add, test, replace, copy, move, remove", [
    { op: "add", path: "/data/new", value: "1" },
    { op: "test", path: "/data/new", value: "1" },
    { op: "replace", path: "/data/new", value: "2" },
    { op: "copy", from: "/data/new", path: "/data/copied" },
    { op: "move", from: "/data/new", path: "/data/moved" },
    { op: "remove", path: "/data/k" },
  ]),
  onMap("json", "json: a slash in a name", [
    { op: "add", path: "/metadata/annotations", value: { "example.com/b": "d" } },
  ]),
  onMap("json", "json: its escape", [{ op: "replace", path: "/metadata/annotations/example.com~1b", value: "e" }]),
  onMap("json", "json: replace what is missing", [{ op: "replace", path: "/data/none", value: "x" }]),
  onMap("json", "json: remove what is missing", [{ op: "remove", path: "/data/none" }]),
  onMap("json", "json: add below what is missing", [{ op: "add", path: "/none/none", value: "x" }]),
  onMap("json", "json: a test that fails", [{ op: "test", path: "/data/copied", value: "x" }]),
  onMap("json", "json: a test of null", [{ op: "test", path: "/data/none", value: null }]),
  onMap("json", "json: an unknown operation", [{ op: "dance", path: "/data" }]),
  onMap("json", "json: no operation", [{ path: "/data" }]),
  onMap("json", "json: no path", [{ op: "remove" }]),
  onMap("json", "json: a path without a slash", [{ op: "add", path: "data", value: {} }]),
  onMap("json", "json: no list", { op: "add" }),
  onMap("json", "json: an operation that is none", ["x"]),
  onMap("json", "json: another name", [{ op: "replace", path: "/metadata/name", value: "other" }]),
  onMap("json", "json: a wrong type", [{ op: "add", path: "/data", value: "x" }]),
  onMap("json", "json: an unknown field", [{ op: "add", path: "/foo", value: "x" }]),
  onService("json", "json: an element of a list", [
    { op: "add", path: "/spec/ports/0", value: { name: "zero", port: 10 } },
  ]),
  onService("json", "json: the end of a list", [
    { op: "add", path: "/spec/ports/-", value: { name: "last", port: 11 } },
  ]),
  onService("json", "json: past the end of a list", [
    { op: "add", path: "/spec/ports/99", value: { name: "x", port: 12 } },
  ]),
  onService("json", "json: before a list", [
    { op: "add", path: "/spec/ports/-1", value: { name: "before", port: 13 } },
  ]),
  onService("json", "json: the last by a negative index", [
    { op: "replace", path: "/spec/ports/-1/name", value: "neg" },
  ]),
  onService("json", "json: an index that is none", [{ op: "replace", path: "/spec/ports/x", value: {} }]),
  onService("json", "json: an index with zeros", [{ op: "test", path: "/spec/ports/00", value: {} }]),
];

const merge: readonly Step[] = [
  onMap("merge", "merge: nulls inside of new objects", {
    data: { a: "1" },
    metadata: { annotations: { x: null, y: "z" } },
  }),
  onMap("merge", "merge: a wrong type", { data: [] }),
  onMap("merge", "merge: no object", ["x"]),
  onMap("merge", "merge: an unknown field", { foo: { bar: 1 } }),
  {
    ...onMap("merge", "merge: an unknown field when it is strict", { foo: 1 }),
    path: `${MAP}?fieldValidation=Strict`,
  },
  onMap("merge", "merge: directives are fields", { data: { $patch: "delete" } }),
  onMap("merge", "merge: another version", { metadata: { resourceVersion: "1" } }),
  { ...onMap("merge", "merge: with force", { data: {} }), path: `${MAP}?force=true` },
];

/** Patches of all types, right and wrong, on objects of their own. */
export const PATCH_STEPS: readonly Step[] = [
  { name: "patch: a pod", method: "POST", path: `${core}/pods`, body: pod },
  {
    name: "patch: a map",
    method: "POST",
    path: `${core}/configmaps`,
    body: { metadata: { name: "patched" }, data: { k: "v" } },
  },
  { name: "patch: a service", method: "POST", path: `${core}/services`, body: service },
  {
    name: "patch: a deployment",
    method: "POST",
    path: "/apis/apps/v1/namespaces/suite/deployments?fieldManager=maker",
    body: deployment,
  },
  ...strategic,
  ...json,
  ...merge,
  { name: "patch: the service in the end", method: "GET", path: SERVICE },
  { name: "patch: the deployment in the end", method: "GET", path: DEPLOYMENT },
  {
    name: "patch: release the pod",
    method: "PATCH",
    path: POD,
    contentType: TYPES.merge,
    body: { metadata: { finalizers: null } },
  },
  ...[POD, MAP, SERVICE, DEPLOYMENT].map(
    (path): Step => ({ name: `patch: delete ${path}`, method: "DELETE", path, body: { gracePeriodSeconds: 0 } }),
  ),
];
