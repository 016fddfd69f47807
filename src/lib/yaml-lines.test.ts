import assert from "node:assert/strict";
import { test } from "node:test";
import { SystemClock } from "./clock.ts";
import { linePath } from "./line-path.ts";
import { parseDocuments } from "./yaml.ts";

const clock = new SystemClock();
const { signal } = new AbortController();
const linesOf = async (text: string): Promise<Record<string, number>> => {
  const { documents } = await parseDocuments(text, { signal, clock, lines: true });
  return Object.fromEntries(documents[0]?.lines ?? []);
};

test("lines of keys and items, at any depth", async () => {
  const text = "a: 1\nb:\n  c: 2\n  d/e:\n  - x\n  - f: 3\n";
  assert.deepEqual(await linesOf(text), {
    "/a": 1,
    "/b": 2,
    "/b/c": 3,
    "/b/d~1e": 4,
    "/b/d~1e/0": 5,
    "/b/d~1e/1": 6,
    "/b/d~1e/1/f": 6,
  });
});

test("lines of JSON, with CRLF and a byte order mark too", async () => {
  assert.deepEqual(await linesOf('{\n  "a": [\n    1\n  ]\n}'), { "/a": 2, "/a/0": 3 });
  assert.deepEqual(await linesOf("\ufeffa: 1\r\nb: 2\r\n"), { "/a": 1, "/b": 2 });
});

test("doubled keys in JSON are told when lines are asked for", async () => {
  const { warnings } = await parseDocuments('{"a": 1,\n"a": 2}', { signal, clock, lines: true });
  assert.match(warnings.join(), /line 2: key "a" is set twice/);
});

test("a large text is parsed in a thread and still has its lines", async () => {
  const text = Array.from({ length: 4000 }, (_, index) => `key${index}: value`).join("\n");
  const lines = await linesOf(text);
  assert.equal(lines["/key3999"], 4000);
});

test("a circle of aliases or a merge does not hold it", async () => {
  assert.deepEqual(await linesOf("a: &x {b: 1}\nc: *x\n"), { "/a": 1, "/a/b": 1, "/c": 2 });
});

test("without the wish there are none", async () => {
  const { documents } = await parseDocuments("a: 1", { signal, clock });
  assert.deepEqual(documents, [{ value: { a: 1 }, line: 1 }]);
});

test("a slash in a name stays one step", () => assert.equal(linePath("/a", "b/c~d"), "/a/b~1c~0d"));
