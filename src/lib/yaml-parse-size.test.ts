import assert from "node:assert/strict";
import { test } from "node:test";
import { parseText } from "./yaml-parse.ts";

const outcome = (text: string, mostValues: number): string => {
  const parsed = parseText(text, { mostValues });
  return parsed.ok ? "parsed" : parsed.code;
};

const counted: readonly { name: string; text: string; values: number; excess: "TooLarge" | "TooManyAliases" }[] = [
  { name: "JSON", text: '{"a":[1,2],"b":{}}', values: 6, excess: "TooLarge" },
  { name: "the same as YAML", text: "a: [1, 2]\nb: {}\n", values: 6, excess: "TooLarge" },
  { name: "all documents together", text: "a\n---\n[b]\n", values: 3, excess: "TooLarge" },
  { name: "a key without a value", text: "? a\n? b\n", values: 3, excess: "TooLarge" },
  { name: "an alias", text: "- &a [x, y]\n- *a\n- *a\n", values: 10, excess: "TooManyAliases" },
  { name: "an alias of an alias", text: "- &a [x]\n- &b [*a, *a]\n- *b\n", values: 13, excess: "TooManyAliases" },
  { name: "an alias of a text", text: "- &a x\n- *a\n", values: 3, excess: "TooManyAliases" },
  { name: "an alias of a key", text: "&a x: 1\ny: *a\n", values: 3, excess: "TooManyAliases" },
  { name: "an alias as a key", text: "- &a [x, y]\n- *a : 1\n", values: 9, excess: "TooManyAliases" },
  { name: "a merge key", text: "- &a {x: 1, y: 2}\n- <<: *a\n", values: 8, excess: "TooManyAliases" },
  { name: "the last anchor of a name", text: "- &a [x, y]\n- &a x\n- *a\n", values: 6, excess: "TooManyAliases" },
  {
    name: "the anchor before an alias",
    text: "- &a [x, y]\n- {k: *a, &a l: 1}\n",
    values: 9,
    excess: "TooManyAliases",
  },
  { name: "the inner one of two anchors", text: "- &a [&a x, y]\n- *a\n", values: 5, excess: "TooManyAliases" },
];
for (const { name, text, values, excess } of counted) {
  test(`${name} counts ${values} values`, () => {
    assert.equal(outcome(text, values), "parsed");
    assert.equal(outcome(text, values - 1), excess);
  });
}

test("many aliases of something small are no excess", () => {
  const parsed = parseText(`a: &a {x: 1}\nb: [${"*a,".repeat(1_000)}]\n`, { mostValues: 50_000 });
  assert.ok(parsed.ok);
  const want = { a: { x: 1 }, b: Array(1_000).fill({ x: 1 }) };
  assert.deepEqual(
    parsed.documents.map(({ value }) => value),
    [want],
  );
});

test("a value that contains itself is nested too deeply", () => {
  assert.equal(outcome("&a [x, *a]", 50_000), "TooDeep");
  assert.equal(outcome("a: &a {<<: *a}", 50_000), "TooDeep");
});
