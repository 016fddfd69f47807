import assert from "node:assert/strict";
import { test } from "node:test";
import type { Abortable } from "../lib/abort.ts";
import { readEntries, readEnvObjects } from "./env-objects.ts";
import type { ObjectKind, ObjectKinds, ObjectRef, ObjectSource } from "./object-source.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");
const objects: { readonly [K in ObjectKind]?: ObjectKinds[K] } = {
  ConfigMap: { metadata: { name: "one" }, data: { text: "a" }, binaryData: { bytes: base64("b") } },
  Secret: { metadata: { name: "one" }, data: { password: base64("c") } },
};
const source: ObjectSource = {
  get: <K extends ObjectKind>(ref: ObjectRef<K>): Promise<ObjectKinds[K] | undefined> =>
    // The map is typed by kind; the compiler cannot follow the index.
    Promise.resolve(objects[ref.kind] as ObjectKinds[K] | undefined),
  onChange: () => undefined,
};
const options: Abortable = new AbortController();
const map = { kind: "ConfigMap", namespace: "ns", name: "one" } as const;
const secret = { kind: "Secret", namespace: "ns", name: "one" } as const;

test("binaryData of a ConfigMap is never a variable", async () => {
  const found = await readEnvObjects(source, [map, secret], options);
  assert.deepEqual([...(found.get("ConfigMap/ns/one") ?? [])].map(String), ["text,a"]);
  assert.deepEqual([...(found.get("Secret/ns/one")?.keys() ?? [])], ["password"]);
});

test("binaryData of a ConfigMap is part of a volume", async () => {
  assert.deepEqual([...((await readEntries(source, map, options))?.keys() ?? [])], ["text", "bytes"]);
});
