import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigMap } from "../../src/model/generated/types.ts";
import type { ObjectSource } from "../../src/model/object-source.ts";
import { ObjectStore } from "../../src/sources/index.ts";
import { FakeObjects } from "../support/objects.ts";

/** An `ObjectSource` whose ConfigMaps a test decides. */
interface ObjectsHarness {
  readonly source: ObjectSource;
  /** These ConfigMaps exist now, and no others. */
  set(...objects: readonly ConfigMap[]): void;
}

const never = { signal: new AbortController().signal };
const ref = (name: string) => ({ kind: "ConfigMap", namespace: "default", name }) as const;
const object = (name: string, value: string): ConfigMap => ({
  kind: "ConfigMap",
  metadata: { name, namespace: "default" },
  data: { value },
});

function objectsContract(name: string, open: () => ObjectsHarness): void {
  test(`${name}: an object is what it was last, or nothing`, async () => {
    const { source, set } = open();
    assert.equal(await source.get(ref("a"), never), undefined);
    set(object("a", "1"));
    assert.deepEqual((await source.get(ref("a"), never))?.data, { value: "1" });
    set(object("a", "2"));
    assert.deepEqual((await source.get(ref("a"), never))?.data, { value: "2" });
    set();
    assert.equal(await source.get(ref("a"), never), undefined);
  });

  test(`${name}: kinds and namespaces are apart`, async () => {
    const { source, set } = open();
    set(object("a", "1"));
    assert.equal(await source.get({ kind: "Secret", namespace: "default", name: "a" }, never), undefined);
    assert.equal(await source.get({ ...ref("a"), namespace: "other" }, never), undefined);
  });

  test(`${name}: who listens hears of coming, changing and going of that object, until it is done`, () => {
    const { source, set } = open();
    const done = new AbortController();
    let [mine, others] = [0, 0];
    source.onChange(ref("a"), () => void mine++, done);
    source.onChange(ref("b"), () => void others++, never);
    set(object("a", "1"));
    set(object("a", "2"));
    set();
    assert.deepEqual([mine, others], [3, 0]);
    done.abort();
    set(object("a", "3"), object("b", "1"));
    assert.deepEqual([mine, others], [3, 1]);
  });

  test(`${name}: whoever listens sees the new version in the call`, async () => {
    const { source, set } = open();
    let seen: Promise<ConfigMap | undefined> = Promise.resolve(undefined);
    source.onChange(ref("a"), () => void (seen = source.get(ref("a"), never)), never);
    set(object("a", "1"));
    assert.deepEqual((await seen)?.data, { value: "1" });
  });
}

objectsContract("manifests", () => {
  const source = new ObjectStore();
  return {
    source,
    set: (...objects) =>
      source.apply(
        "file",
        objects.map((one) => ({ kind: "ConfigMap", object: one })),
      ),
  };
});

objectsContract("the fake", () => {
  const source = new FakeObjects();
  const known = new Set<string>();
  return {
    source,
    set: (...objects) => {
      const now = new Set(objects.map(({ metadata }) => metadata.name ?? ""));
      for (const name of known) if (!now.has(name)) source.remove(ref(name));
      known.clear();
      for (const one of objects) {
        known.add(one.metadata.name ?? "");
        source.put(ref(one.metadata.name ?? ""), one);
      }
    },
  };
});

test("manifests: the same content read again is no change", () => {
  const store = new ObjectStore();
  let changes = 0;
  store.onChange(ref("a"), () => void changes++, never);
  store.apply("file", [{ kind: "ConfigMap", object: object("a", "1") }]);
  store.apply("file", [{ kind: "ConfigMap", object: object("a", "1") }]);
  assert.equal(changes, 1);
});
