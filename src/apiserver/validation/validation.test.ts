import assert from "node:assert/strict";
import { test } from "node:test";
import type { ObjectMeta } from "../../model/generated/types.ts";
import { pathProblems, portProblems } from "./formats.ts";
import { validateMeta } from "./object-meta.ts";

const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "r", uid: "u" };
const metas: readonly { name: string; meta: ObjectMeta; isNamespaced?: boolean; want: readonly string[] }[] = [
  { name: "an object in a namespace", meta: { namespace: "default", ownerReferences: [owner] }, want: [] },
  { name: "no namespace", meta: {}, want: ["metadata.namespace"] },
  { name: "a name that is no namespace", meta: { namespace: "A_b" }, want: ["metadata.namespace"] },
  { name: "an object of the cluster", meta: {}, isNamespaced: false, want: [] },
  {
    name: "an object of the cluster in a namespace",
    meta: { namespace: "default" },
    isNamespaced: false,
    want: ["metadata.namespace"],
  },
  {
    name: "an owner without a version",
    meta: { namespace: "default", ownerReferences: [{ ...owner, apiVersion: "apps/" }] },
    want: ["metadata.ownerReferences.apiVersion"],
  },
  {
    name: "an owner without a UID",
    meta: { namespace: "default", ownerReferences: [{ ...owner, uid: "" }] },
    want: ["metadata.ownerReferences.uid"],
  },
  {
    name: "finalizers that contradict each other",
    meta: { namespace: "default", finalizers: ["orphan", "foregroundDeletion"] },
    want: ["metadata.finalizers"],
  },
];
for (const { name, meta, isNamespaced = true, want } of metas) {
  test(`metadata: ${name}`, () => {
    assert.deepEqual(
      validateMeta(meta, { isNamespaced }).map(({ field }) => field),
      want,
    );
  });
}

const names: readonly (readonly [string, readonly string[]])[] = [
  ["a:b", []],
  [".", ["may not be '.'"]],
  ["..", ["may not be '..'"]],
  ["a/b", ["may not contain '/'"]],
  ["a%b", ["may not contain '%'"]],
  ["/%", ["may not contain '/'", "may not contain '%'"]],
];
for (const [name, want] of names) test(`a name in a path: ${name}`, () => assert.deepEqual(pathProblems(name), want));

test("ports are from 1 to 65535", () => {
  assert.deepEqual(
    [0, 1, 65_535, 65_536].map((port) => portProblems(port).length),
    [1, 0, 0, 1],
  );
});
