import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigMap, Secret } from "../../../model/generated/types.ts";
import { configMapKind, MOST_DATA_BYTES } from "./config-map.ts";
import { secretKind } from "./secret.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const secret = (more: Partial<Secret> = {}): Secret => ({ metadata: { name: "s" }, type: "Opaque", ...more });
const map = (more: Partial<ConfigMap> = {}): ConfigMap => ({ metadata: { name: "m" }, ...more });
const fieldsOf = (errors: readonly { readonly field: string }[] | undefined): string[] =>
  (errors ?? []).map(({ field }) => field);

test("plain text of a secret is encoded over its data, and the type has a default", () => {
  const given = { metadata: { name: "s" }, data: { a: base64("1"), b: base64("2") }, stringData: { b: "ü", c: "3" } };
  const want = { metadata: { name: "s" }, data: { a: base64("1"), b: base64("ü"), c: base64("3") }, type: "Opaque" };
  assert.deepEqual(secretKind.defaults?.(given as Secret), want);
});

const types: readonly { readonly type: string; readonly data?: Secret["data"]; readonly want: readonly string[] }[] = [
  { type: "kubernetes.io/tls", data: { "tls.crt": "" }, want: ["data[tls.key]"] },
  { type: "kubernetes.io/tls", data: { "tls.crt": "", "tls.key": "" }, want: [] },
  { type: "kubernetes.io/ssh-auth", want: ["data[ssh-privatekey]"] },
  { type: "kubernetes.io/dockercfg", want: ["data[.dockercfg]"] },
  { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": base64("{}") }, want: [] },
  {
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": base64("{") },
    want: ["data[.dockerconfigjson]"],
  },
  { type: "kubernetes.io/basic-auth", want: ["data[username]", "data[password]"] },
  { type: "kubernetes.io/basic-auth", data: { password: "" }, want: [] },
  {
    type: "kubernetes.io/service-account-token",
    want: ["metadata.annotations[kubernetes.io/service-account.name]"],
  },
  { type: "example.com/own", want: [] },
  { type: "constructor", want: [] },
];
for (const { type, data, want } of types) {
  test(`a secret of type ${type} with ${Object.keys(data ?? {}).join(", ") || "nothing"} misses ${want.length}`, () => {
    assert.deepEqual(fieldsOf(secretKind.validate?.(secret({ type, ...(data && { data }) }))), want);
  });
}

test("the content of a broken secret is not in the message about it", () => {
  const data = { ".dockerconfigjson": base64("hunter2") };
  const errors = secretKind.validate?.(secret({ type: "kubernetes.io/dockerconfigjson", data }));
  assert.equal(errors?.length, 1);
  assert.doesNotMatch(JSON.stringify(errors), /hunter2|aHVudGVyMg/);
});

test("data may have a megabyte: decoded for secrets, as they are for others", () => {
  const full = "x".repeat(MOST_DATA_BYTES);
  assert.deepEqual(secretKind.validate?.(secret({ data: { a: base64(full) } })), []);
  assert.equal(secretKind.validate?.(secret({ data: { a: base64(`${full}x`) } }))?.length, 1);
  assert.deepEqual(configMapKind.validate?.(map({ data: { a: full } })), []);
  assert.equal(configMapKind.validate?.(map({ data: { a: full, b: "x" } }))?.length, 1);
  assert.equal(configMapKind.validate?.(map({ data: { a: full }, binaryData: { b: "x" } }))?.length, 1);
});

test("keys are those of files, and each is there once", () => {
  const wrong = ["", ".", "..", "..a", "a/b", "x".repeat(254)];
  for (const key of wrong) assert.notEqual(configMapKind.validate?.(map({ data: { [key]: "" } }))?.length, 0, key);
  for (const key of ["a", ".a", "a..b", "x".repeat(253)]) {
    assert.deepEqual(configMapKind.validate?.(map({ data: { [key]: "" } })), [], key);
  }
  const twice = map({ data: { a: "" }, binaryData: { a: "" } });
  assert.deepEqual(fieldsOf(configMapKind.validate?.(twice)), ["data"]);
});

test("the type of a secret never changes", () => {
  assert.deepEqual(fieldsOf(secretKind.validateUpdate?.(secret({ type: "other" }), secret())), ["type"]);
});

const A = { data: { a: base64("1") } };
const B = { data: { a: base64("2") } };
for (const { name, old, next, want } of [
  { name: "other data", old: A, next: B, want: [] },
  { name: "a seal", old: A, next: { ...A, immutable: true }, want: [] },
  { name: "other data under a seal", old: { ...A, immutable: true }, next: { ...B, immutable: true }, want: ["data"] },
  { name: "a broken seal", old: { ...A, immutable: true }, next: A, want: ["immutable"] },
  { name: "no seal and other data", old: { ...A, immutable: true }, next: B, want: ["immutable", "data"] },
  { name: "labels under a seal", old: { ...A, immutable: true }, next: { ...A, immutable: true }, want: [] },
]) {
  test(`${name}: ${want.length === 0 ? "allowed" : "refused"}`, () => {
    assert.deepEqual(fieldsOf(secretKind.validateUpdate?.(secret(next), secret(old))), want);
    assert.deepEqual(fieldsOf(configMapKind.validateUpdate?.(map(next), map(old))), want);
  });
}
