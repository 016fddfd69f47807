import assert from "node:assert/strict";
import { test } from "node:test";
import type { ManagedFieldsEntry } from "../../model/generated/types.ts";
import { decodeTree } from "../schema/decode-tree.ts";
import { StatusError } from "../status/status-error.ts";
import type { JsonObject } from "../store/index.ts";
import { applyConfiguration, recordUpdate } from "./field-owner.ts";
import { FieldSet } from "./field-set.ts";
import { fieldSetOf, mergeTrees } from "./walk.ts";

const write = (manager: string, more: { type?: string; subresource?: string; now?: string } = {}) => ({
  type: "ConfigMap",
  apiVersion: "v1",
  manager,
  subresource: "",
  now: "2026-01-01T00:00:00Z",
  ...more,
});

const empty = (type: string): JsonObject => decodeTree(type, {}).object;
const map = (data: Record<string, string>, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "m", namespace: "default", ...metadata },
  data,
});

const entriesOf = (object: JsonObject): readonly ManagedFieldsEntry[] =>
  (object.metadata as { managedFields?: readonly ManagedFieldsEntry[] }).managedFields ?? [];
const ownedBy = (object: JsonObject, manager: string): readonly string[] | undefined => {
  const entry = entriesOf(object).find((one) => one.manager === manager);
  return entry && FieldSet.decode(entry.fieldsV1).paths();
};

test("a creator owns what it wrote, and nobody owns name and kind", () => {
  const created = recordUpdate(empty("ConfigMap"), map({ a: "1" }, { labels: { x: "y" } }), write("kubectl-create"));
  assert.deepEqual(entriesOf(created), [
    {
      manager: "kubectl-create",
      operation: "Update",
      apiVersion: "v1",
      time: "2026-01-01T00:00:00Z",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:data": { ".": {}, "f:a": {} }, "f:metadata": { "f:labels": { ".": {}, "f:x": {} } } },
    },
  ]);
});

test("objects that are always there are not owned, those behind a pointer are", () => {
  const pod = decodeTree("Pod", {
    metadata: { name: "p" },
    spec: {
      containers: [{ name: "c", image: "x", ports: [{ containerPort: 80, protocol: "TCP" }] }],
      securityContext: { runAsUser: 1 },
      volumes: [{ name: "v", emptyDir: {} }],
    },
  }).object;
  const created = recordUpdate(empty("Pod"), pod, write("m", { type: "Pod" }));
  assert.deepEqual(entriesOf(created)[0]?.fieldsV1, {
    "f:spec": {
      "f:containers": {
        'k:{"name":"c"}': {
          ".": {},
          "f:image": {},
          "f:name": {},
          "f:ports": {
            ".": {},
            'k:{"containerPort":80,"protocol":"TCP"}': { ".": {}, "f:containerPort": {}, "f:protocol": {} },
          },
          "f:resources": {},
        },
      },
      "f:securityContext": { ".": {}, "f:runAsUser": {} },
      "f:volumes": { ".": {}, 'k:{"name":"v"}': { ".": {}, "f:emptyDir": {}, "f:name": {} } },
    },
  });
});

test("an updater takes what it changes from others, and what it removes is owned by nobody", () => {
  const first = recordUpdate(empty("ConfigMap"), map({ a: "1", b: "1", c: "1" }), write("one"));
  const second = recordUpdate(first, map({ a: "2", b: "1", d: "1" }), write("two", { now: "2026-01-02T00:00:00Z" }));
  assert.deepEqual(ownedBy(second, "one"), [".data", ".data.b"]);
  assert.deepEqual(ownedBy(second, "two"), [".data.a", ".data.d"]);
});

test("an update without a change changes no ownership and no time", () => {
  const first = recordUpdate(empty("ConfigMap"), map({ a: "1" }), write("one"));
  const again = recordUpdate(first, map({ a: "1" }), write("two", { now: "2026-01-02T00:00:00Z" }));
  assert.deepEqual(entriesOf(again), entriesOf(first));
});

test("a client that sends an empty list resets ownership", () => {
  const first = recordUpdate(empty("ConfigMap"), map({ a: "1" }), write("one"));
  const reset = recordUpdate(first, map({ a: "1" }, { managedFields: [{}] }), write("two"));
  assert.deepEqual(entriesOf(reset), []);
});

test("a write of the status owns nothing of the spec, and the other way round", () => {
  const node = { metadata: { name: "n" }, spec: { podCIDR: "10.0.0.0/24" }, status: { phase: "Running" } };
  const whole = decodeTree("Node", node).object;
  const status = recordUpdate(empty("Node"), whole, write("kubelet", { type: "Node", subresource: "status" }));
  assert.equal(entriesOf(status)[0]?.subresource, "status");
  assert.deepEqual(ownedBy(status, "kubelet"), [".status.phase"]);
  const spec = recordUpdate(empty("Node"), whole, write("kubectl", { type: "Node" }));
  assert.deepEqual(ownedBy(spec, "kubectl"), [".spec.podCIDR"]);
});

test("more than ten updaters are merged, the oldest first", () => {
  let object = empty("ConfigMap");
  for (let n = 1; n <= 12; n++) {
    const data = Object.fromEntries(Array.from({ length: n }, (_, at) => [`k${at}`, "1"]));
    object = recordUpdate(object, map(data, { managedFields: entriesOf(object) }), {
      ...write(`m${n}`),
      now: `2026-01-${String(n).padStart(2, "0")}T00:00:00Z`,
    });
  }
  const managers = entriesOf(object).map(({ manager }) => manager);
  assert.equal(managers.length, 10);
  assert.equal(managers[0], "ancient-changes");
  assert.deepEqual(ownedBy(object, "ancient-changes"), [".data", ".data.k0", ".data.k1", ".data.k2"]);
});

const config = (data: Record<string, string>): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "m" },
  data,
});
const apply = (live: JsonObject, manager: string, data: Record<string, string>): JsonObject =>
  applyConfiguration(live, config(data), { ...write(manager), isForced: false });

test("an applier owns what it says, and what it stops saying is removed", () => {
  const first = apply(empty("ConfigMap"), "a", { x: "1", y: "1" });
  assert.deepEqual(ownedBy(first, "a"), [".data.x", ".data.y"]);
  const second = apply(first, "a", { x: "2" });
  assert.deepEqual(second.data, { x: "2" });
  assert.deepEqual(ownedBy(second, "a"), [".data.x"]);
});

test("what another manager owns too is not removed", () => {
  const first = apply(empty("ConfigMap"), "a", { x: "1", y: "1" });
  const shared = apply(first, "b", { y: "1" });
  assert.deepEqual(ownedBy(shared, "b"), [".data.y"]);
  const left = apply(shared, "a", { x: "1" });
  assert.deepEqual(left.data, { x: "1", y: "1" });
});

test("changing what another owns is a conflict that names it, unless it is forced", () => {
  const first = recordUpdate(empty("ConfigMap"), map({ x: "1" }), write("kubectl"));
  assert.throws(
    () => apply(first, "a", { x: "2" }),
    (error) => {
      assert.ok(error instanceof StatusError);
      assert.equal(error.message, 'Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.x');
      assert.deepEqual(error.status.details?.causes, [
        { reason: "FieldManagerConflict", message: 'conflict with "kubectl" using v1', field: ".data.x" },
      ]);
      return true;
    },
  );
  const forced = applyConfiguration(first, config({ x: "2" }), { ...write("a"), isForced: true });
  assert.deepEqual(ownedBy(forced, "a"), [".data.x"]);
  assert.deepEqual(ownedBy(forced, "kubectl"), [".data"]);
});

test("applying the same value as another is shared ownership", () => {
  const first = recordUpdate(empty("ConfigMap"), map({ x: "1" }), write("kubectl"));
  const both = apply(first, "a", { x: "1" });
  assert.deepEqual(ownedBy(both, "a"), [".data.x"]);
  assert.deepEqual(ownedBy(both, "kubectl"), [".data", ".data.x"]);
});

test("applying the same again changes nothing, not even the time", () => {
  const first = apply(empty("ConfigMap"), "a", { x: "1" });
  const again = applyConfiguration(first, config({ x: "1" }), {
    ...write("a", { now: "2026-05-05T00:00:00Z" }),
    isForced: false,
  });
  assert.deepEqual(again, first);
});

test("an applied object must not have managedFields", () => {
  const body = { ...config({}), metadata: { name: "m", managedFields: [] } };
  assert.throws(
    () => applyConfiguration(empty("ConfigMap"), body, { ...write("a"), isForced: false }),
    /managedFields must be nil/,
  );
});

test("appliers of containers own theirs, and an element goes with its last owner", () => {
  const pod = (containers: readonly JsonObject[]): JsonObject => ({ metadata: { name: "p" }, spec: { containers } });
  const options = (manager: string) => ({ ...write(manager, { type: "Pod" }), isForced: false });
  const one = applyConfiguration(empty("Pod"), pod([{ name: "a", image: "a" }]), options("one"));
  const two = applyConfiguration(one, pod([{ name: "b", image: "b" }]), options("two"));
  const names = (object: JsonObject): unknown =>
    (object.spec as { containers?: { name: string }[] }).containers?.map(({ name }) => name);
  assert.deepEqual(names(two), ["a", "b"]);
  const left = applyConfiguration(two, { metadata: { name: "p" } }, options("one"));
  assert.deepEqual(names(left), ["b"]);
});

const orders: readonly { live: string; config: string; want: string }[] = [
  { live: "abc", config: "ca", want: "bca" },
  { live: "ab", config: "b", want: "ab" },
  { live: "abc", config: "d", want: "abcd" },
  { live: "abc", config: "dc", want: "abdc" },
  { live: "", config: "ba", want: "ba" },
];
for (const { live, config: wanted, want } of orders) {
  test(`merging the list ${wanted} into ${live} makes ${want}`, () => {
    const list = (text: string): JsonObject => ({ spec: { containers: text.split("").map((name) => ({ name })) } });
    const merged = mergeTrees("Pod", list(live), list(wanted)) as { spec: { containers: { name: string }[] } };
    assert.equal(merged.spec.containers.map(({ name }) => name).join(""), want);
  });
}

test("a key that is called __proto__ is applied, kept, owned and removed like any other", () => {
  // Parsed, as from a request: in a literal it would set the prototype.
  const data = (text: string) => JSON.parse(text) as Record<string, string>;
  const first = apply(empty("ConfigMap"), "a", data('{"__proto__":"1","x":"1"}'));
  const second = apply(first, "a", data('{"__proto__":"2","x":"1"}'));
  assert.equal(JSON.stringify(second.data), '{"__proto__":"2","x":"1"}');
  assert.deepEqual(ownedBy(second, "a"), [".data.__proto__", ".data.x"]);
  const without = apply(second, "a", data('{"__proto__":"2"}'));
  assert.equal(JSON.stringify(without.data), '{"__proto__":"2"}');
  assert.equal(JSON.stringify(apply(second, "a", data('{"x":"1"}')).data), '{"x":"1"}');
  const other = apply(second, "b", data('{"y":"1"}'));
  assert.equal(JSON.stringify(other.data), '{"__proto__":"2","x":"1","y":"1"}');
});

test("ownership that a client sent is kept as it is, whatever its keys are called", () => {
  const fields = '{"__proto__":{},"f:data":{}}';
  assert.equal(JSON.stringify(FieldSet.decode(JSON.parse(fields)).encode()), fields);
});

test("a long list comes in the applier's order", () => {
  const finalizers = Array.from({ length: 2000 }, (_, index) => `example.com/${index}`);
  const wanted = finalizers.toReversed();
  const merged = mergeTrees("ConfigMap", { metadata: { finalizers } }, { metadata: { finalizers: wanted } });
  assert.deepEqual(merged, { metadata: { finalizers: wanted } });
});

test("the key of an element may be its default", () => {
  const ports = (port: JsonObject): JsonObject => ({ spec: { containers: [{ name: "a", ports: [port] }] } });
  const paths = fieldSetOf("Pod", ports({ containerPort: 80 })).paths();
  assert.ok(paths.includes('.spec.containers[name="a"].ports[containerPort=80,protocol="TCP"]'), paths.join(" "));
});

test("an apply that changes nothing has no time: it is of its owner's last change, if there was one", () => {
  const forced = { isForced: false };
  const made = applyConfiguration(empty("ConfigMap"), map({ a: "1" }), { ...write("one"), ...forced });
  const shared = applyConfiguration(made, map({ a: "1" }), {
    ...write("two", { now: "2026-01-02T00:00:00Z" }),
    ...forced,
  });
  const again = applyConfiguration(shared, map({ a: "1" }), {
    ...write("one", { now: "2026-01-03T00:00:00Z" }),
    ...forced,
  });
  assert.deepEqual(
    entriesOf(again).map(({ manager, time }) => [manager, time]),
    [
      ["two", undefined],
      ["one", "2026-01-01T00:00:00Z"],
    ],
  );
});

test("a reference to an owner is owned as a whole", () => {
  const ownerReferences = [{ apiVersion: "v1", kind: "Pod", name: "p", uid: "1" }];
  const made = applyConfiguration(empty("ConfigMap"), map({}, { ownerReferences }), {
    ...write("one"),
    isForced: false,
  });
  const fields = entriesOf(made)[0]?.fieldsV1 as Record<string, unknown> | undefined;
  assert.deepEqual(fields?.["f:metadata"], { "f:ownerReferences": { 'k:{"uid":"1"}': {} } });
});

test("what was there before the first apply is owned as by an update, with the objects around it", () => {
  const live = map({ a: "1" }, { uid: "1" });
  const applied = applyConfiguration(live, map({ b: "2" }), { ...write("one"), isForced: false });
  const before = entriesOf(applied).find(({ manager }) => manager === "before-first-apply");
  assert.deepEqual(before?.fieldsV1, { "f:data": { ".": {}, "f:a": {} } });
});
