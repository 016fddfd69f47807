import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "../status/status-error.ts";
import { jsonPatch } from "./json-patch.ts";
import { mergePatch } from "./merge-patch.ts";
import { strategicPatch } from "./strategic-patch.ts";

test("a merge patch removes what is null, merges objects and replaces the rest", () => {
  const before = { a: 1, b: { c: [1, 2], d: 3 }, e: "x" };
  assert.deepEqual(mergePatch(before, { a: null, b: { c: [3], f: { g: null, h: 1 } } }), {
    b: { c: [3], d: 3, f: { h: 1 } },
    e: "x",
  });
  assert.deepEqual(before, { a: 1, b: { c: [1, 2], d: 3 }, e: "x" });
});

test("a merge patch with the key __proto__ changes no prototype", () => {
  const merged = mergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}')) as Record<string, unknown>;
  assert.equal(merged.polluted, undefined);
  assert.ok(Object.hasOwn(merged, "__proto__"));
});

const document = { a: { "b/c": 1, list: [1, 2, 3] }, d: "x" };
const jsonCases: readonly { name: string; patch: readonly unknown[]; want: unknown }[] = [
  { name: "add to an object", patch: [{ op: "add", path: "/e", value: { f: 1 } }], want: { ...document, e: { f: 1 } } },
  {
    name: "add into and behind a list",
    patch: [
      { op: "add", path: "/a/list/1", value: 9 },
      { op: "add", path: "/a/list/-", value: 8 },
    ],
    want: { a: { "b/c": 1, list: [1, 9, 2, 3, 8] }, d: "x" },
  },
  {
    name: "remove with an escaped slash",
    patch: [{ op: "remove", path: "/a/b~1c" }],
    want: { a: { list: [1, 2, 3] }, d: "x" },
  },
  {
    name: "remove of a list",
    patch: [{ op: "remove", path: "/a/list/0" }],
    want: { a: { "b/c": 1, list: [2, 3] }, d: "x" },
  },
  { name: "replace", patch: [{ op: "replace", path: "/d", value: null }], want: { ...document, d: null } },
  {
    name: "move",
    patch: [{ op: "move", from: "/d", path: "/a/x" }],
    want: { a: { "b/c": 1, list: [1, 2, 3], x: "x" } },
  },
  { name: "copy", patch: [{ op: "copy", from: "/a/list", path: "/l" }], want: { ...document, l: [1, 2, 3] } },
  { name: "test passes", patch: [{ op: "test", path: "/a/list", value: [1, 2, 3] }], want: document },
  { name: "test of what is not there is null", patch: [{ op: "test", path: "/none", value: null }], want: document },
];
for (const { name, patch, want } of jsonCases) {
  test(`json patch: ${name}`, () => assert.deepEqual(jsonPatch(document, patch), want));
}

const refused: readonly { patch: unknown; code: number }[] = [
  { patch: {}, code: 400 },
  { patch: [1], code: 400 },
  { patch: [{ op: "add" }], code: 422 },
  { patch: [{ op: "test", path: "/d", value: "y" }], code: 422 },
  { patch: [{ op: "remove", path: "/none" }], code: 422 },
  { patch: [{ op: "add", path: "/none/below", value: 1 }], code: 422 },
  { patch: [{ op: "add", path: "/a/list/7", value: 1 }], code: 422 },
  { patch: [{ op: "explode", path: "/d" }], code: 422 },
  { patch: [{ op: "remove", path: "/__proto__" }], code: 422 },
  { patch: [{ op: "move", from: "", path: "/a/x" }], code: 422 },
  { patch: [{ op: "move", from: "/a", path: "/a/list/0" }], code: 422 },
];
for (const { patch, code } of refused) {
  test(`json patch ${JSON.stringify(patch)} is refused with ${code}`, () => {
    assert.throws(
      () => jsonPatch(document, patch),
      (error) => error instanceof StatusError && error.code === code,
    );
  });
}

test("json patch: the copies of one patch are limited by their values", () => {
  const list = Array.from({ length: 20_000 }, () => ({}));
  const copies = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ op: "copy", from: "/l", path: `/${i}` }));
  const isTooLarge = (error: unknown): boolean => error instanceof StatusError && error.code === 413;
  assert.equal(Object.keys(jsonPatch({ l: list }, copies(1)) as object).length, 2);
  assert.throws(() => jsonPatch({ l: list }, copies(2)), isTooLarge);
});

const pod = {
  metadata: { name: "web", labels: { a: "1", b: "1" }, finalizers: ["x/one", "x/two"] },
  spec: {
    containers: [
      { name: "a", image: "a:1", args: ["1"], env: [{ name: "X", value: "1" }] },
      { name: "b", image: "b:1" },
    ],
    volumes: [{ name: "v", emptyDir: {} }],
    nodeSelector: { disk: "ssd" },
  },
};

const strategicCases: readonly { name: string; patch: Record<string, unknown>; want: unknown }[] = [
  {
    name: "merges a container by its name, and lists without a key as a whole",
    patch: { spec: { containers: [{ name: "a", args: ["2"], env: [{ name: "Y", value: "2" }] }] } },
    want: [
      {
        name: "a",
        image: "a:1",
        args: ["2"],
        env: [
          { name: "Y", value: "2" },
          { name: "X", value: "1" },
        ],
      },
      { name: "b", image: "b:1" },
    ],
  },
  {
    name: "deletes an element by its key",
    patch: { spec: { containers: [{ name: "a", $patch: "delete" }] } },
    want: [{ name: "b", image: "b:1" }],
  },
  {
    name: "replaces the whole list",
    patch: { spec: { containers: [{ $patch: "replace" }, { name: "c", image: "c:1" }] } },
    want: [{ name: "c", image: "c:1" }],
  },
  {
    name: "puts what is new before what the patch does not name, as in Kubernetes",
    patch: { spec: { containers: [{ name: "c", image: "c:1" }] } },
    want: [{ name: "c", image: "c:1" }, ...pod.spec.containers],
  },
  {
    name: "puts what is new behind what the patch names before it",
    patch: { spec: { containers: [{ name: "a" }, { name: "c", image: "c:1" }] } },
    want: [pod.spec.containers[0], { name: "c", image: "c:1" }, pod.spec.containers[1]],
  },
  {
    name: "without an order, what the client names comes in the order of the patch",
    patch: { spec: { containers: [{ name: "b" }, { name: "c", image: "c:1" }, { name: "a", $patch: "delete" }] } },
    want: [pod.spec.containers[1], { name: "c", image: "c:1" }],
  },
  {
    name: "orders as the client does",
    patch: {
      spec: {
        "$setElementOrder/containers": [{ name: "c" }, { name: "b" }, { name: "a" }],
        containers: [{ name: "c", image: "c:1" }],
      },
    },
    want: [{ name: "c", image: "c:1" }, pod.spec.containers[1], pod.spec.containers[0]],
  },
  {
    name: "an order alone sorts what is there",
    patch: { spec: { "$setElementOrder/containers": [{ name: "b" }, { name: "a" }] } },
    want: [pod.spec.containers[1], pod.spec.containers[0]],
  },
  {
    name: "elements that the client does not know keep their place",
    patch: {
      spec: {
        "$setElementOrder/containers": [{ name: "b" }, { name: "c" }],
        containers: [{ name: "c", image: "c:1" }],
      },
    },
    want: [pod.spec.containers[0], pod.spec.containers[1], { name: "c", image: "c:1" }],
  },
];
for (const { name, patch, want } of strategicCases) {
  test(`strategic merge patch: ${name}`, () => {
    const patched = strategicPatch("Pod", pod, patch) as typeof pod;
    assert.deepEqual(patched.spec.containers, want);
    assert.deepEqual(patched.spec.volumes, pod.spec.volumes);
  });
}

test("a JSON patch whose copies double the object each time is refused", () => {
  const patch = Array.from({ length: 24 }, (_value, index) => ({ op: "copy", from: "", path: `/k${index}` }));
  assert.throws(
    () => jsonPatch({ a: "x".repeat(100) }, patch),
    (error) => error instanceof StatusError && error.code === 413,
  );
  assert.deepEqual(jsonPatch({ a: 1 }, patch.slice(0, 1)), { a: 1, k0: { a: 1 } });
});

test("strategic merge patch: keys that are retained, primitive lists, whole objects", () => {
  const patch = {
    metadata: {
      labels: { $patch: "replace", c: "1" },
      "$deleteFromPrimitiveList/finalizers": ["x/one"],
      finalizers: ["x/three"],
    },
    spec: { volumes: [{ name: "v", $retainKeys: ["name", "hostPath"], hostPath: { path: "/x" } }], nodeSelector: null },
  };
  const patched = strategicPatch("Pod", pod, patch);
  assert.deepEqual(patched.metadata, { name: "web", labels: { c: "1" }, finalizers: ["x/three", "x/two"] });
  assert.deepEqual(patched.spec, {
    containers: pod.spec.containers,
    volumes: [{ name: "v", hostPath: { path: "/x" } }],
  });
});

const wrongPatches: readonly (readonly [patch: Record<string, unknown>, code: number, message: RegExp])[] = [
  [{ spec: { containers: [{ image: "x" }] } }, 500, /^map: map\[image:x\] does not contain declared merge key: name$/],
  [{ spec: { $patch: "explode" } }, 500, /^unknown patch type: explode in map: map\[\$patch:explode\]$/],
  [{ spec: { $retainKeys: "x" } }, 400, /^invalid patch format of retainKeys$/],
  [{ spec: { $retainKeys: ["x"], y: 1 } }, 400, /^invalid patch format of retainKeys$/],
  [
    { spec: { "$setElementOrder/containers": [{ name: "a" }], containers: [{ name: "c" }] } },
    500,
    /^The order in patch list:\n\[map\[name:c\]\]\n doesn't match \$setElementOrder list:\n\[map\[name:a\]\]\n$/,
  ],
];
for (const [patch, code, message] of wrongPatches) {
  test(`strategic merge patch: ${JSON.stringify(patch)} is refused`, () => {
    assert.throws(
      () => strategicPatch("Pod", pod, patch),
      (error) => error instanceof StatusError && error.code === code && message.test(error.message),
    );
  });
}

test("strategic merge patch: what the object does not have yet comes without directives", () => {
  const patch = {
    spec: {
      containers: [
        { name: "a", $patch: "delete" },
        { name: "b", x: null },
      ],
    },
  };
  assert.deepEqual(strategicPatch("Pod", {}, patch), { spec: { containers: [{ name: "b" }] } });
});

test("a strategic patch of a long list, and its order, take time in proportion to it", () => {
  const names = Array.from({ length: 10_000 }, (_, index) => ({ name: `E${index}` }));
  const container = (env: readonly object[], more: object = {}) => ({
    spec: { containers: [{ name: "a", env, ...more }] },
  });
  const patch = container(
    names.toReversed().map((one) => ({ ...one, value: "x" })),
    { "$setElementOrder/env": names.toReversed() },
  );
  const before = process.cpuUsage();
  const merged = strategicPatch("Pod", container(names), patch) as ReturnType<typeof container>;
  const { user } = process.cpuUsage(before);
  assert.deepEqual(merged.spec.containers[0]?.env[0], { name: "E9999", value: "x" });
  assert.ok(user < 1_000_000, `${user} µs`);
});

test("what a strategic patch deletes goes first, wherever it stands in the patch", () => {
  const env = (...all: readonly object[]) => ({ spec: { containers: [{ name: "a", env: all }] } });
  const patch = env({ name: "A", value: "new" }, { name: "A", $patch: "delete" });
  assert.deepEqual(
    strategicPatch("Pod", env({ name: "A", value: "old", valueFrom: {} }), patch),
    env({ name: "A", value: "new" }),
  );
});

const indexes: readonly (readonly [op: object, want: readonly number[] | undefined])[] = [
  [{ op: "add", path: "/-1", value: 9 }, [1, 2, 3, 9]],
  [{ op: "add", path: "/-4", value: 9 }, [9, 1, 2, 3]],
  [{ op: "add", path: "/-5", value: 9 }, undefined],
  [{ op: "replace", path: "/-1", value: 9 }, [1, 2, 9]],
  [{ op: "remove", path: "/-3" }, [2, 3]],
  [{ op: "remove", path: "/-4" }, undefined],
  [{ op: "remove", path: "/3" }, undefined],
  [{ op: "replace", path: "/1.5", value: 9 }, undefined],
  [{ op: "replace", path: "/length", value: 0 }, undefined],
];
for (const [operation, want] of indexes) {
  test(`JSON patch ${JSON.stringify(operation)} of a list of three`, () => {
    const patch = (): unknown => jsonPatch([1, 2, 3], [operation]);
    if (want !== undefined) assert.deepEqual(patch(), want);
    else assert.throws(patch, (error) => error instanceof StatusError && error.code === 422);
  });
}

test("an operation without its parts does not apply, and one that is none is no patch", () => {
  const code = (patch: unknown): number => {
    try {
      jsonPatch({}, patch);
    } catch (error) {
      if (error instanceof StatusError) return error.code;
    }
    return 0;
  };
  assert.deepEqual(
    [[{}], [{ op: "remove" }], [{ path: "/a" }], [{ op: 1, path: "/a" }], ["x"], {}].map(code),
    [422, 422, 422, 422, 400, 400],
  );
});

test("a JSON patch replaces a field that is missing, but not below what is missing", () => {
  const replace = (path: string): unknown => jsonPatch({ a: {} }, [{ op: "replace", path, value: 1 }]);
  assert.deepEqual(replace("/a/b"), { a: { b: 1 } });
  assert.throws(
    () => replace("/b/c"),
    (error) => error instanceof StatusError && error.code === 422,
  );
});
