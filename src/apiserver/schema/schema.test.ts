import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeTree, TypeMismatch } from "./decode-tree.ts";
import { duplicateKeys } from "./duplicate-keys.ts";

test("zero values are dropped, kept or filled in as Kubernetes' types do", () => {
  const { object } = decodeTree("Pod", {
    metadata: { name: "p", labels: {}, generateName: "" },
    spec: {
      hostNetwork: false,
      containers: [{ name: "c", image: "x", tty: false, env: [{ name: "A", value: "" }], command: [] }],
      volumes: [],
      terminationGracePeriodSeconds: 0,
    },
  });
  assert.deepEqual(object, {
    metadata: { name: "p" },
    spec: {
      containers: [{ name: "c", image: "x", env: [{ name: "A" }], resources: {} }],
      terminationGracePeriodSeconds: 0,
    },
    status: {},
  });
});

test("quantities, times and bytes have one form", () => {
  const { object } = decodeTree("Pod", {
    spec: { containers: [{ name: "c", resources: { limits: { cpu: 0.5, memory: "1024Mi" } } }] },
    metadata: { creationTimestamp: "2026-01-01T02:00:00.5+02:00" },
  });
  assert.equal((object.metadata as { creationTimestamp: string }).creationTimestamp, "2026-01-01T00:00:00Z");
  const [container] = (object.spec as { containers: { resources: unknown }[] }).containers;
  assert.deepEqual(container?.resources, { limits: { cpu: "500m", memory: "1Gi" } });
});

test("unknown fields are named by their path and dropped", () => {
  const { object, unknown } = decodeTree("Pod", { foo: 1, spec: { containers: [{ name: "c", bar: 2 }] } });
  assert.deepEqual(unknown, ["foo", "spec.containers[0].bar"]);
  assert.equal(object.foo, undefined);
});

const mismatches: readonly (readonly [string, unknown, string])[] = [
  [
    "Pod",
    { spec: { containers: [{ image: 1 }] } },
    "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
  ],
  [
    "Pod",
    { spec: { containers: {} } },
    "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
  ],
  ["Pod", { spec: "x" }, "json: cannot unmarshal string into Go struct field Pod.spec of type v1.PodSpec"],
  [
    "Pod",
    { spec: { containers: [{ ports: [{ containerPort: "x" }] }] } },
    "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
  ],
  ["Secret", { data: { a: "?" } }, "illegal base64 data at input byte 0"],
  [
    "Lease",
    { spec: { renewTime: "now" } },
    'parsing time "now" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "now" as "2006"',
  ],
];
for (const [type, value, message] of mismatches) {
  test(`refuses ${JSON.stringify(value)}`, () => {
    assert.throws(
      () => decodeTree(type, value),
      (error) => {
        assert.ok(error instanceof TypeMismatch);
        assert.equal(error.message, message);
        return true;
      },
    );
  });
}

test("decoding twice changes nothing", () => {
  const value = { spec: { containers: [{ name: "c", livenessProbe: { httpGet: { port: "http" } } }] } };
  const once = decodeTree("Pod", value).object;
  assert.deepEqual(decodeTree("Pod", once).object, once);
});

const duplicates: readonly (readonly [string, readonly string[]])[] = [
  ["{}", []],
  ['{"a":1,"b":{"a":2}}', []],
  ['{"a":1,"a":2}', ["a"]],
  ['{"a":[{"b":1,"b":2},{"b":3}]}', ["a[0].b"]],
  ['{"a\\"":"x\\\\","a\\"":null}', ['a"']],
  ["[1,2]", []],
];
for (const [text, want] of duplicates) {
  test(`doubled keys of ${text}`, () => assert.deepEqual(duplicateKeys(text), want));
}

test("doubled keys are at most 100, and the names of their parents are cut", () => {
  const inner = `{${'"a":1,'.repeat(500)}"a":1}`;
  const found = duplicateKeys(`{"${"x".repeat(500_000)}":[${inner}]}`);
  assert.equal(found.length, 100);
  assert.deepEqual(new Set(found), new Set([`${"x".repeat(200)}…`]));
});

test("an object with more values than any patches should make is refused", () => {
  const args = (length: number) => ({ spec: { containers: [{ args: Array(length).fill("") }] } });
  assert.ok(decodeTree("Pod", args(190_000)));
  assert.throws(() => decodeTree("Pod", args(200_001)), TypeMismatch);
});

test("the search for doubled keys ends for every JSON", () => {
  fc.assert(fc.property(fc.json(), (text) => assert.ok(Array.isArray(duplicateKeys(text)))));
});

test("a key that an object has twice is named by its path, with the place in its list", () => {
  assert.deepEqual(duplicateKeys('{"a":[{"b":1},{"b":1,"c":[],"b":2},{"b":3}],"a":4}'), ["a[1].b", "a"]);
});
