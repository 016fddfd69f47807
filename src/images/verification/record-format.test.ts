import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeIntent,
  decodeRecord,
  encodeIntent,
  encodeRecord,
  isRecordFile,
  recordFileName,
} from "./record-format.ts";

const HEAD = '"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1"';
const TIME = '"lastUpdatedTime":"2024-10-21T12:26:40Z"';
const updatedAt = Date.UTC(2024, 9, 21, 12, 26, 40);
const secret = { uid: "su", namespace: "default", name: "pull-secret", credentialHash: "hash" };
const account = { uid: "au", namespace: "default", name: "robot" };
const name = "docker.io/testing/test";

/** Files in the bytes that Kubernetes v1.36 writes. */
const records = [
  {
    what: "a secret",
    text: `{${HEAD},${TIME},"imageRef":"ref","credentialMapping":{"${name}":{"kubernetesSecrets":[{"uid":"su","namespace":"default","name":"pull-secret","credentialHash":"hash"}]}}}\n`,
    access: new Map([[name, { secrets: [secret], accounts: [], isOpen: false }]]),
  },
  {
    what: "a service account",
    text: `{${HEAD},${TIME},"imageRef":"ref","credentialMapping":{"${name}":{"kubernetesServiceAccounts":[{"uid":"au","namespace":"default","name":"robot"}]}}}\n`,
    access: new Map([[name, { secrets: [], accounts: [account], isOpen: false }]]),
  },
  {
    what: "access of every pod",
    text: `{${HEAD},${TIME},"imageRef":"ref","credentialMapping":{"${name}":{"nodePodsAccessible":true}}}\n`,
    access: new Map([[name, { secrets: [], accounts: [], isOpen: true }]]),
  },
  { what: "no access", text: `{${HEAD},${TIME},"imageRef":"ref"}\n`, access: new Map() },
];
for (const { what, text, access } of records) {
  test(`a record with ${what} is read and written as by Kubernetes`, () => {
    const value = { imageRef: "ref", updatedAt, access };
    assert.deepEqual(decodeRecord(text), { value, isOld: false });
    assert.equal(encodeRecord(value), text);
  });
}

test("a record of v1alpha1 is read and is old", () => {
  const text = `{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1alpha1",${TIME},"imageRef":"ref"}`;
  assert.deepEqual(decodeRecord(text), { value: { imageRef: "ref", updatedAt, access: new Map() }, isOld: true });
});

test("an intent is read and written as by Kubernetes", () => {
  const text =
    '{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"docker.io/testing/test:latest"}\n';
  assert.deepEqual(decodeIntent(text), { value: "docker.io/testing/test:latest", isOld: false });
  assert.equal(encodeIntent("docker.io/testing/test:latest"), text);
});

test("an intent with a field that is not known is damaged", () => {
  const head = '"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1"';
  assert.throws(() => decodeIntent(`{${head},"image":"a","namespace":"b"}`), /field "namespace" is not known/);
});

test("files have the names of Kubernetes", () => {
  const intent = "sha256-aef2af226629a35d5f3ef0fdbb29fdbebf038d0acd8850590e8c48e1e283aa56";
  assert.equal(recordFileName("docker.io/testing/test:latest"), intent);
  assert.equal(
    recordFileName("testimageref"),
    "sha256-b3c0cc4278800b03a308ceb2611161430df571ca733122f0a40ac8b9792a9064",
  );
  assert.deepEqual([intent, `${intent}.tmp`, `temp_${intent}`, `.${intent}.1.1.tmp`].map(isRecordFile), [
    true,
    false,
    false,
    false,
  ]);
});

const damaged = [
  { text: "{" },
  { text: "[]" },
  { text: '{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"a"}' },
  { text: '{"kind":"ImagePulledRecord","apiVersion":"v1"}' },
  { text: `{${HEAD},"lastUpdatedTime":"yesterday","imageRef":"ref"}` },
  { text: `{${HEAD},${TIME},"imageRef":"ref","mayOnlyBeUsedOnMondays":true}` },
  { text: `{${HEAD},${TIME},"imageRef":7}` },
  { text: `{${HEAD},${TIME},"imageRef":"ref","credentialMapping":{"a":{"nodePodsAccessible":"yes"}}}` },
  { text: `{${HEAD},${TIME},"imageRef":"ref","credentialMapping":{"a":{"kubernetesSecrets":{}}}}` },
  { text: `{${HEAD},${TIME},"imageRef":"ref","credentialMapping":{"a":{"mayOnlyBeUsedOnMondays":true}}}` },
  { text: `{${HEAD},${TIME},"imageRef":"ref","credentialMapping":{"a":{"kubernetesSecrets":[{"until":"noon"}]}}}` },
];
for (const { text } of damaged) test(`damaged record: ${text}`, () => assert.throws(() => decodeRecord(text)));
