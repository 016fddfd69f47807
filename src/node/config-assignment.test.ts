import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "../model/generated/types.ts";
import { CONFIG_SOURCE_ANNOTATION, configAssignment } from "./config-assignment.ts";

const FIELD = "spec.configSource of the Node";
const ANNOTATION = "the annotation kubelet-ts/config-source of the Node";
const map = { kind: "configMap", namespace: "ops", name: "web", key: "kubelet" };

/** A node as a server of any age may give it. */
function node(annotation?: string, configSource?: unknown): Node {
  const annotations = annotation === undefined ? {} : { [CONFIG_SOURCE_ANNOTATION]: annotation };
  // Older servers have other shapes than the type.
  return { metadata: { name: "n", annotations }, spec: { configSource } } as Node;
}

const cases: readonly { name: string; given: Node; want: object }[] = [
  { name: "nothing is said", given: node(), want: { kind: "none" } },
  { name: "a null field is none", given: node(undefined, null), want: { kind: "none" } },
  { name: "the key is kubelet unless said", given: node("ops/web"), want: { ...map, by: ANNOTATION } },
  { name: "a key", given: node(" ops/web/b.yaml "), want: { ...map, key: "b.yaml", by: ANNOTATION } },
  {
    name: "v1.11 and later",
    given: node(undefined, { configMap: { namespace: "ops", name: "web", kubeletConfigKey: "k" } }),
    want: { ...map, key: "k", by: FIELD },
  },
  {
    name: "v1.9: the UID must be that one",
    given: node(undefined, { kind: "NodeConfigSource", configMapRef: { namespace: "ops", name: "web", uid: "u" } }),
    want: { ...map, uid: "u", by: FIELD },
  },
  {
    name: "the field goes before the annotation",
    given: node("a/b", { configMap: { namespace: "ops", name: "web", kubeletConfigKey: "kubelet" } }),
    want: { ...map, by: FIELD },
  },
  {
    name: "an empty annotation",
    given: node(""),
    want: { kind: "invalid", by: ANNOTATION, why: '"" is not NAMESPACE/NAME or NAMESPACE/NAME/KEY' },
  },
  {
    name: "too many parts",
    given: node("a/b/c/d"),
    want: { kind: "invalid", by: ANNOTATION, why: '"a/b/c/d" is not NAMESPACE/NAME or NAMESPACE/NAME/KEY' },
  },
  { name: "no namespace", given: node("/web"), want: { kind: "invalid", by: ANNOTATION, why: '"" is no namespace' } },
  {
    name: "a name that cannot be one (it would change the selector)",
    given: node("ops/web,metadata.name!=x"),
    want: { kind: "invalid", by: ANNOTATION, why: '"web,metadata.name!=x" is no name of a ConfigMap' },
  },
  {
    name: "a key that leads out of the store",
    given: node("ops/web/.."),
    want: { kind: "invalid", by: ANNOTATION, why: '".." is no key of a ConfigMap' },
  },
  {
    name: "a field without any source",
    given: node(undefined, {}),
    want: { kind: "invalid", by: FIELD, why: "it names no ConfigMap" },
  },
  {
    name: "v1.9 without a UID",
    given: node(undefined, { configMapRef: { namespace: "ops", name: "web" } }),
    want: { kind: "invalid", by: FIELD, why: "its configMapRef has no uid" },
  },
  {
    name: "v1.11 without a key",
    given: node(undefined, { configMap: { namespace: "ops", name: "web" } }),
    want: { kind: "invalid", by: FIELD, why: '"" is no key of a ConfigMap' },
  },
];

for (const { name, given, want } of cases) {
  test(`which configuration a node is assigned: ${name}`, () => assert.deepEqual(configAssignment(given), want));
}
