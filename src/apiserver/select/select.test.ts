import assert from "node:assert/strict";
import { test } from "node:test";
import { StatusError } from "../status/status-error.ts";
import { matchesFields, parseFieldQuery, requiredValue } from "./field-query.ts";
import { labelQueryOf, parseLabelQuery } from "./label-query.ts";

const labels = { app: "web", tier: "front", size: "7", "example.com/x": "" };

const selected: readonly (readonly [string, boolean])[] = [
  ["", true],
  ["app=web", true],
  ["app==web", true],
  ["app = web , tier=front", true],
  ["app=db", false],
  ["app!=db", true],
  ["missing!=db", true],
  ["app in (web, db)", true],
  ["app in (db)", false],
  ["app notin (db)", true],
  ["missing notin (db)", true],
  ["app", true],
  ["!app", false],
  ["!missing", true],
  ["missing", false],
  ["size>3", true],
  ["size<3", false],
  ["example.com/x", true],
  ["example.com/x=", true],
  ["toString", false],
];
for (const [query, want] of selected) {
  test(`label selector ${JSON.stringify(query)} is ${want}`, () => assert.equal(parseLabelQuery(query)(labels), want));
}

for (const query of [
  "app=web,",
  "=web",
  "app in web",
  "app in (web",
  "app in (",
  "app web",
  "app=a b",
  "app=?",
  "a/b/c=d",
]) {
  test(`label selector ${JSON.stringify(query)} is refused`, () => {
    assert.throws(
      () => parseLabelQuery(query),
      (error) => error instanceof StatusError && error.code === 400,
    );
  });
}

test("a selector of an object becomes a query that means the same", () => {
  const selector = {
    matchLabels: { app: "web" },
    matchExpressions: [
      { key: "tier", operator: "In", values: ["b", "front"] },
      { key: "gone", operator: "DoesNotExist" },
      { key: "size", operator: "Exists" },
    ],
  };
  const query = labelQueryOf(selector);
  assert.equal(query, "!gone,app=web,size,tier in (b,front)");
  assert.equal(parseLabelQuery(query)(labels), true);
});

test("field selectors compare whole values, and escape with a backslash", () => {
  const fields = { "metadata.name": "web", "spec.nodeName": "", note: "a,b=c" };
  const matches = (query: string): boolean => matchesFields(parseFieldQuery(query), fields);
  assert.equal(matches("metadata.name=web"), true);
  assert.equal(matches("metadata.name!=web"), false);
  assert.equal(matches("metadata.name==web,spec.nodeName="), true);
  assert.equal(matches("note=a\\,b\\=c"), true);
  assert.throws(() => parseFieldQuery("metadata.name"), StatusError);
  assert.equal(requiredValue(parseFieldQuery("a!=b,metadata.name=web"), "metadata.name"), "web");
});

test("a selector of more than a thousand conditions is refused: it is checked for each object", () => {
  const conditions = (one: string, count: number): string => Array<string>(count).fill(one).join(",");
  assert.equal(parseLabelQuery(conditions("!a", 1000))({}), true);
  assert.throws(() => parseLabelQuery(conditions("!a", 1001)), { message: /found more than 1000 requirements/ });
  assert.equal(parseFieldQuery(conditions("metadata.name!=a", 1000)).length, 1000);
  assert.throws(() => parseFieldQuery(conditions("metadata.name!=a", 1001)), { message: /more than 1000 conditions/ });
});

test("one of many values is found, and another is not", () => {
  const values = Array.from({ length: 1000 }, (_, index) => `v${index}`).join(",");
  for (const [operator, want] of [
    ["in", false],
    ["notin", true],
  ] as const) {
    const matches = parseLabelQuery(`app ${operator} (${values})`);
    assert.equal(matches(labels), want);
    assert.equal(matches({ app: "v999" }), !want);
  }
});
