import assert from "node:assert/strict";
import { test } from "node:test";
import { KindTable } from "../kinds/kind-table.ts";
import { AddressRange } from "../kinds/network/address-range.ts";
import { servedKinds } from "../kinds/served-kinds.ts";
import { StoredObject } from "../store/index.ts";
import { EventLines } from "./event-lines.ts";
import type { Rendering } from "./render.ts";

const services = { addresses: new AddressRange("10.96.0.0/16"), nodePorts: [30_000, 32_767] as const, random: () => 0 };
const kinds = new KindTable(servedKinds({ authority: "", services, describeSource: () => "" }));
const kind = kinds.find({ group: "", version: "v1", plural: "configmaps" });
assert.ok(kind !== undefined);
const format = { encoding: "json", as: "object", version: "v1" } as const;
const rendering: Rendering = { kind, format, includeObject: "Metadata", now: 0 };
const object = (name: string) => new StoredObject({ namespace: "n", name }, JSON.stringify({ name }), 1);

test("the line of an event is made once for all watches", () => {
  const lines = new EventLines();
  const a = object("a");
  const line = lines.lineOf(rendering, { type: "ADDED", object: a });
  assert.equal(line.toString(), '{"type":"ADDED","object":{"name":"a"}}\n');
  assert.equal(lines.lineOf(rendering, { type: "ADDED", object: a }), line);
  const modified = lines.lineOf(rendering, { type: "MODIFIED", object: a });
  assert.equal(modified.toString(), '{"type":"MODIFIED","object":{"name":"a"}}\n');
});

test("each form of an event has a line of its own, and an age is told anew each second", () => {
  const lines = new EventLines();
  const map = new StoredObject({ namespace: "n", name: "a" }, '{"metadata":{"name":"a"}}', 1);
  const event = { type: "ADDED", object: map } as const;
  const table: Rendering = { ...rendering, format: { ...format, as: "table" }, now: 5000 };
  const forms: readonly Rendering[] = [
    rendering,
    table,
    { ...table, includeObject: "None" },
    { ...table, now: 6000 },
    { ...rendering, format: { ...format, as: "metadata" } },
  ];
  const made = forms.map((form) => lines.lineOf(form, event));
  assert.equal(new Set(made.map((line) => line)).size, forms.length);
  forms.forEach((form, index) => assert.equal(lines.lineOf(form, event), made[index]));
  assert.equal(lines.lineOf({ ...table, now: 5999 }, event), made[1]);
  assert.equal(lines.lineOf({ ...rendering, now: 9000 }, event), made[0]);
});

test("of the lines only so many bytes are kept, the newest", () => {
  const lines = new EventLines(130);
  const [a, b, c] = ["a", "b", "c"].map(object);
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  const [first, second] = [a, b].map((one) => lines.lineOf(rendering, { type: "ADDED", object: one }));
  lines.lineOf(rendering, { type: "ADDED", object: c });
  assert.equal(lines.lineOf(rendering, { type: "ADDED", object: b }), second);
  assert.notEqual(lines.lineOf(rendering, { type: "ADDED", object: a }), first);
});

test("a short line of a large object counts as the object that it keeps; the newest one stays", () => {
  const lines = new EventLines(1000);
  const large = (name: string) =>
    new StoredObject(
      { namespace: "n", name },
      JSON.stringify({ metadata: { name }, data: { x: "x".repeat(2000) } }),
      1,
    );
  const metadata: Rendering = { ...rendering, format: { ...format, as: "metadata" } };
  const [a, b] = [large("a"), large("b")];
  const first = lines.lineOf(metadata, { type: "ADDED", object: a });
  assert.ok(first.length < 400);
  assert.equal(lines.lineOf(metadata, { type: "ADDED", object: a }), first);
  lines.lineOf(metadata, { type: "ADDED", object: b });
  assert.notEqual(lines.lineOf(metadata, { type: "ADDED", object: a }), first);
});
