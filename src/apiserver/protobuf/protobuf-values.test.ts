import assert from "node:assert/strict";
import { test } from "node:test";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { StatusError } from "../status/status-error.ts";
import { decodeProtobuf } from "./decode-protobuf.ts";

/** Fields of a message: a number is a varint, a list of messages or texts is repeated. */
type Field = string | number | Uint8Array | readonly (string | Uint8Array)[];
type Fields = Readonly<Record<number, Field>>;

function message(fields: Fields): Uint8Array {
  const writer = new BinaryWriter();
  for (const [key, value] of Object.entries(fields)) {
    const number = Number(key);
    if (typeof value === "number") writer.uint32(number << 3).int64(value);
    else {
      for (const one of Array.isArray(value) ? value : [value]) {
        const bytes = typeof one === "string" ? Buffer.from(one) : (one as Uint8Array);
        writer.uint32((number << 3) | 2).bytes(bytes);
      }
    }
  }
  return writer.finish();
}

const entry = (key: string, value: string | Uint8Array): Uint8Array => message({ 1: key, 2: value });

function body(apiVersion: string, kind: string, raw: Uint8Array): Buffer {
  const envelope = message({ 1: message({ 1: apiVersion, 2: kind }), 2: raw, 4: "application/json" });
  return Buffer.concat([Buffer.from("k8s\0"), envelope]);
}
const decoded = (apiVersion: string, kind: string, fields: Fields) =>
  decodeProtobuf(body(apiVersion, kind, message(fields)));

test("texts, numbers, flags, maps and bytes are read as JSON has them", () => {
  const time = message({ 1: 1_767_225_600, 2: 999 });
  const labels = [entry("a", "1"), entry("b", "ü"), entry("__proto__", "x")];
  const metadata = message({ 1: "s", 7: 3, 8: time, 11: labels, 14: ["f/1", "f/2"] });
  const found = decoded("v1", "Secret", { 1: metadata, 2: [entry("k", Buffer.from([0, 255]))], 5: 1, 99: "new" });
  assert.deepEqual(
    [found["apiVersion"], found["kind"], found["data"], found["immutable"]],
    ["v1", "Secret", { k: "AP8=" }, true],
  );
  const { labels: read, ...rest } = found["metadata"] as { labels: Record<string, string> };
  assert.deepEqual(Object.entries(read), [
    ["a", "1"],
    ["b", "ü"],
    ["__proto__", "x"],
  ]);
  const creationTimestamp = "2026-01-01T00:00:00Z";
  assert.deepEqual(rest, { name: "s", generation: 3, creationTimestamp, finalizers: ["f/1", "f/2"] });
});

test("a port is a number or a name, and a negative number stays one", () => {
  const port = (targetPort: Fields, number: number) => message({ 3: number, 4: message(targetPort) });
  const ports = [port({ 1: 0, 2: 8080 }, 80), port({ 1: 1, 2: 7, 3: "http" }, 81), port({ 2: -1 }, -5)];
  const { spec } = decoded("v1", "Service", { 2: message({ 1: ports }) }) as { spec: { ports: object[] } };
  assert.deepEqual(spec.ports, [
    { port: 80, targetPort: 8080 },
    { port: 81, targetPort: "http" },
    { port: -5, targetPort: -1 },
  ]);
});

test("what JSON has inline is read into its place, and quantities are texts", () => {
  const disk = message({ 3: message({ 1: "/srv" }) });
  const capacity = [entry("storage", message({ 1: "1Gi" })), entry("other", message({}))];
  const { spec } = decoded("v1", "PersistentVolume", { 2: message({ 1: capacity, 2: disk }) });
  assert.deepEqual(spec, { capacity: { storage: "1Gi", other: "0" }, hostPath: { path: "/srv" } });
});

test("times have seconds or microseconds, and one that is not set is null", () => {
  const renewed = message({ 1: 1_767_225_600, 2: 12_345_678 });
  const { spec } = decoded("coordination.k8s.io/v1", "Lease", { 2: message({ 3: message({}), 4: renewed, 2: 40 }) });
  assert.deepEqual(spec, { acquireTime: null, renewTime: "2026-01-01T00:00:00.012345Z", leaseDurationSeconds: 40 });
});

test("numbers of a list come one by one or packed", () => {
  const packed = new BinaryWriter().int64(1).int64(300).finish();
  const rules = (exitCodes: Uint8Array): unknown => {
    const spec = message({ 2: [message({ 1: "c", 25: [message({ 1: "Restart", 2: exitCodes })] })] });
    const found = decoded("v1", "Pod", { 2: spec }) as { spec: { containers: Record<string, unknown>[] } };
    return found.spec.containers[0]?.["restartPolicyRules"];
  };
  const want = (...values: readonly number[]) => [{ action: "Restart", exitCodes: { operator: "In", values } }];
  assert.deepEqual(rules(message({ 1: "In", 2: packed })), want(1, 300));
  const single = new BinaryWriter()
    .uint32(2 << 3)
    .int64(7)
    .uint32(2 << 3)
    .int64(8)
    .finish();
  assert.deepEqual(rules(Buffer.concat([message({ 1: "In" }), single])), want(7, 8));
});

test("JSON within is read, and the options of a deletion have no group", () => {
  const revision = decoded("apps/v1", "ControllerRevision", { 2: message({ 1: '{"spec":{"a":[1]}}' }), 3: 2 });
  assert.deepEqual([revision["data"], revision["revision"]], [{ spec: { a: [1] } }, 2]);
  assert.equal(decoded("v1", "DeleteOptions", { 1: 5 })["gracePeriodSeconds"], 5);
  assert.equal(decoded("apps/v1", "DeleteOptions", { 1: 5 })["gracePeriodSeconds"], 5);
});

const whole = body("v1", "ConfigMap", message({ 1: message({ 1: "m", 11: [entry("a", "1")] }), 2: [entry("k", "v")] }));
for (const { name, bytes } of [
  { name: "nothing", bytes: Buffer.alloc(0) },
  { name: "JSON", bytes: Buffer.from('{"kind":"ConfigMap"}') },
  { name: "an unknown kind", bytes: body("v1", "Nothing", message({})) },
  { name: "a kind of another group", bytes: body("apps/v1", "Pod", message({})) },
  {
    name: "a time that no calendar has",
    bytes: body("v1", "Pod", message({ 1: message({ 8: message({ 1: 2 ** 52 }) }) })),
  },
  {
    name: "JSON within that is none",
    bytes: body("apps/v1", "ControllerRevision", message({ 2: message({ 1: "{" }) })),
  },
]) {
  test(`${name} is a mistake of the client`, () => {
    assert.throws(
      () => decodeProtobuf(bytes),
      (error) => error instanceof StatusError && error.status.code === 400,
    );
  });
}

test("a body that is cut anywhere is read in part or refused, and nothing else happens", () => {
  let refused = 0;
  for (let length = 0; length < whole.length; length++) {
    try {
      decodeProtobuf(whole.subarray(0, length));
    } catch (error) {
      assert.ok(error instanceof StatusError && error.status.code === 400, String(error));
      refused++;
    }
  }
  assert.ok(refused > whole.length / 2, String(refused));
});
