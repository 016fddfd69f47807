import assert from "node:assert/strict";
import { test } from "node:test";
import { type FactsReader, StoredObject } from "./stored-object.ts";

test("what is selected by is read once for a kind, and anew for another kind of the same object", () => {
  const object = new StoredObject({ namespace: "n", name: "e" }, '{"about":"web"}', 1);
  let reads = 0;
  const by =
    (field: string): FactsReader =>
    (tree) => {
      reads++;
      return { labels: {}, fields: { [field]: String(tree["about"]) } };
    };
  const [old, current] = [by("involvedObject.name"), by("regarding.name")];
  assert.deepEqual(object.selectable(old).fields, { "involvedObject.name": "web" });
  object.selectable(old);
  assert.equal(reads, 1);
  assert.deepEqual(object.selectable(current).fields, { "regarding.name": "web" });
  assert.deepEqual(object.selectable(old).fields, { "involvedObject.name": "web" });
});
