import assert from "node:assert/strict";
import { test } from "node:test";
import type { LabelSelector } from "./generated/types.ts";
import { labelMatcher, matchesLabels } from "./label-selector.ts";

const labels = { app: "web", tier: "front" };
const one = (operator: string, key: string, values?: readonly string[]): LabelSelector => ({
  matchExpressions: [{ key, operator, ...(values && { values }) }],
});

const rows: [string, LabelSelector | undefined, boolean][] = [
  ["no selector means nothing", undefined, false],
  ["an empty one everything", {}, true],
  ["a label that is there", { matchLabels: { app: "web" } }, true],
  ["a label with another value", { matchLabels: { app: "db" } }, false],
  ["all labels count", { matchLabels: { app: "web", zone: "a" } }, false],
  ["In", one("In", "app", ["db", "web"]), true],
  ["In, another", one("In", "app", ["db"]), false],
  ["In, missing", one("In", "zone", ["a"]), false],
  ["NotIn", one("NotIn", "app", ["db"]), true],
  ["NotIn, that one", one("NotIn", "app", ["web"]), false],
  ["NotIn, missing", one("NotIn", "zone", ["a"]), true],
  ["Exists", one("Exists", "tier"), true],
  ["Exists, missing", one("Exists", "zone"), false],
  ["DoesNotExist", one("DoesNotExist", "zone"), true],
  ["Exists, a name that every object inherits", one("Exists", "constructor"), false],
  ["DoesNotExist, there", one("DoesNotExist", "tier"), false],
  ["an operator that nobody knows", one("Like", "tier"), false],
  ["both kinds must hold", { matchLabels: { app: "web" }, ...one("Exists", "zone") }, false],
];
for (const [name, selector, expected] of rows) {
  test(name, () => {
    assert.equal(matchesLabels(selector, labels), expected);
    assert.equal(labelMatcher(selector)(labels), expected);
  });
}

test("an object without labels is matched by what needs none", () => {
  assert.equal(labelMatcher({})(undefined), true);
  assert.equal(labelMatcher(one("NotIn", "app", ["web"]))(undefined), true);
  assert.equal(labelMatcher(one("Exists", "app"))(undefined), false);
});

test("a matcher does not search the values again for each object", () => {
  const isSearched = (): never => assert.fail("the list is searched");
  const values = Object.assign(["v1", "v2"], { includes: isSearched, indexOf: isSearched, some: isSearched });
  const matches = labelMatcher(one("In", "app", values));
  assert.equal(matches({ app: "v2" }), true);
  assert.equal(matches({ app: "none" }), false);
});
