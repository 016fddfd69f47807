import type { Step } from "./apiserver-step.ts";

const core = "/api/v1/namespaces/suite";
const SERVICE = `${core}/services/applied`;
const MAP = `${core}/configmaps/applied`;
const DEPLOYMENT = "/apis/apps/v1/namespaces/suite/deployments/applied";
const APPLY = "application/apply-patch+yaml";
const MERGE = "application/merge-patch+json";

interface Applier {
  readonly to: string;
  readonly by: string;
  readonly force?: boolean;
}

const apply = (name: string, { to, by, force }: Applier, body: object): Step => ({
  name: `apply: ${name}`,
  method: "PATCH",
  path: `${to}?fieldManager=${by}${force === true ? "&force=true" : ""}`,
  contentType: APPLY,
  body,
});

const deployment = (spec: object, metadata: object = {}): object => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "applied", ...metadata },
  spec,
});
const base = { selector: { matchLabels: { app: "a" } } };
const template = (...containers: object[]): object => ({ metadata: { labels: { app: "a" } }, spec: { containers } });
const map = (data: object, metadata: object = {}): object => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "applied", ...metadata },
  data,
});
const service = (spec: object): object => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "applied" },
  spec: { clusterIP: "None", ...spec },
});
const env = (...names: string[]): object[] => names.map((name) => ({ name, value: name.toLowerCase() }));

/** Server-side apply: who owns what after several appliers and updaters of the same objects. */
export const APPLY_STEPS: readonly Step[] = [
  apply(
    "makes a deployment",

    { to: DEPLOYMENT, by: "one" },
    deployment({
      ...base,
      replicas: 1,
      template: template({ name: "a", image: "x", env: env("A", "B") }),
    }),
  ),
  apply(
    "a second applier of other fields",

    { to: DEPLOYMENT, by: "two" },
    deployment({
      ...base,
      template: template({ name: "a", image: "x", env: env("C") }, { name: "b", image: "y" }),
    }),
  ),
  apply(
    "a conflict of one field",

    { to: DEPLOYMENT, by: "two" },
    deployment({ ...base, replicas: 5, template: template({ name: "a", image: "x" }) }),
  ),
  apply(
    "conflicts of several fields",

    { to: DEPLOYMENT, by: "three" },
    deployment({
      ...base,
      replicas: 7,
      template: template({ name: "a", image: "z" }, { name: "b", image: "w" }),
    }),
  ),
  apply(
    "forced",

    { to: DEPLOYMENT, by: "three", force: true },
    deployment({
      ...base,
      replicas: 7,
      template: template({ name: "a", image: "z" }, { name: "b", image: "w" }),
    }),
  ),
  apply(
    "the first says less",

    { to: DEPLOYMENT, by: "one" },
    deployment({ ...base, template: template({ name: "a", image: "z", env: env("B") }) }),
  ),
  apply(
    "a shared container is not said any more",

    { to: DEPLOYMENT, by: "two" },
    deployment({ ...base, template: template({ name: "a" }) }),
  ),
  {
    name: "apply: an update takes a field",
    method: "PATCH",
    path: `${DEPLOYMENT}?fieldManager=updater`,
    contentType: MERGE,
    body: { spec: { replicas: 9 }, metadata: { labels: { u: "1" } } },
  },
  apply("a conflict with the updater", { to: DEPLOYMENT, by: "three" }, deployment({ ...base, replicas: 7 })),
  apply("the same value is shared", { to: DEPLOYMENT, by: "four" }, deployment({ ...base, replicas: 9 })),
  apply("nothing at all", { to: DEPLOYMENT, by: "four" }, deployment({})),
  apply(
    "a duplicate key",

    { to: DEPLOYMENT, by: "five" },
    deployment({ ...base, template: template({ name: "q", image: "1" }, { name: "q", image: "2" }) }),
  ),
  apply(
    "a list element without its key",

    { to: DEPLOYMENT, by: "five" },
    deployment({ ...base, template: template({ image: "1" }) }),
  ),
  apply("a wrong type", { to: DEPLOYMENT, by: "five" }, deployment({ ...base, replicas: "x" })),
  apply("an unknown field", { to: DEPLOYMENT, by: "five" }, deployment({ ...base, foo: 1 })),
  apply("managed fields", { to: DEPLOYMENT, by: "five" }, deployment(base, { managedFields: [{ manager: "x" }] })),
  apply("a null", { to: DEPLOYMENT, by: "five" }, deployment({ ...base, minReadySeconds: null, template: template() })),
  apply(
    "makes a service",

    { to: SERVICE, by: "one" },
    service({
      ports: [
        { port: 1, name: "a" },
        { port: 2, name: "b" },
      ],
      selector: { x: "y" },
    }),
  ),
  apply(
    "a port of another protocol",

    { to: SERVICE, by: "two" },
    service({ ports: [{ port: 1, protocol: "UDP", name: "c" }] }),
  ),
  apply(
    "ports in another order",

    { to: SERVICE, by: "one" },
    service({
      ports: [
        { port: 2, name: "b" },
        { port: 3, name: "d" },
        { port: 1, name: "a" },
      ],
    }),
  ),
  apply("a selector is taken over", { to: SERVICE, by: "two", force: true }, service({ selector: { x: "z", w: "v" } })),
  apply("a port is not said any more", { to: SERVICE, by: "one" }, service({ ports: [{ port: 3, name: "d" }] })),
  apply(
    "makes a map",

    { to: MAP, by: "one" },
    map({ a: "1", b: "2" }, { labels: { l: "1" }, annotations: { "x/y": "z" } }),
  ),
  apply("a key of two owners", { to: MAP, by: "two" }, map({ b: "2", c: "3" })),
  apply("it goes with the last owner", { to: MAP, by: "one" }, map({ a: "1" })),
  apply("and goes", { to: MAP, by: "two" }, map({ c: "3" })),
  apply("an empty map", { to: MAP, by: "two" }, map({})),
  apply(
    "finalizers and owners",

    { to: MAP, by: "two" },
    map(
      { c: "4" },
      {
        ownerReferences: [
          { apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "11111111-2222-3333-4444-555555555555" },
        ],
      },
    ),
  ),
  {
    name: "apply: ownership is reset",
    method: "PATCH",
    path: `${MAP}?fieldManager=resetter`,
    contentType: MERGE,
    body: { metadata: { managedFields: [{}] } },
  },
  apply("after the reset", { to: MAP, by: "one" }, map({ z: "1" })),
  {
    name: "apply: an owner is written by hand",
    method: "PATCH",
    path: `${MAP}?fieldManager=hand`,
    contentType: MERGE,
    body: {
      metadata: {
        managedFields: [
          {
            manager: "h",
            operation: "Apply",
            apiVersion: "v1",
            fieldsType: "FieldsV1",
            fieldsV1: { "f:data": { "f:z": {} } },
          },
        ],
      },
    },
  },
  {
    name: "apply: broken fields of an owner",
    method: "PATCH",
    path: `${MAP}?fieldManager=hand`,
    contentType: MERGE,
    body: {
      metadata: {
        managedFields: [
          { manager: "h", operation: "Apply", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: { "x:data": 1 } },
        ],
      },
    },
  },
  apply("another kind", { to: MAP, by: "one" }, { apiVersion: "v1", kind: "Secret", metadata: { name: "applied" } }),
  apply("no kind", { to: MAP, by: "one" }, { apiVersion: "v1", metadata: { name: "applied" } }),
  apply("another name", { to: MAP, by: "one" }, map({}, { name: "other" })),
  apply("another namespace", { to: MAP, by: "one" }, map({}, { namespace: "other" })),
  apply("a version that is not the newest", { to: MAP, by: "one" }, map({ z: "2" }, { resourceVersion: "1" })),
  { name: "apply: the deployment in the end", method: "GET", path: DEPLOYMENT },
  ...[DEPLOYMENT, SERVICE, MAP].map((path): Step => ({ name: `apply: delete ${path}`, method: "DELETE", path })),
];
