import assert from "node:assert/strict";
import { test } from "node:test";
import { ListBudget } from "./list-budget.ts";

const list = (count: number, idLength = 1) =>
  Array.from({ length: count }, () => ({ id: "x".repeat(idLength), isHealthy: true, nodes: [] }));

function site() {
  const kept = new Set(["a", "b", "c"]);
  const limits = { most: { devices: 100, idBytes: 1000 }, small: { devices: 5, idBytes: 50 } };
  return { kept, budget: new ListBudget((resource) => kept.has(resource), limits) };
}

test("lists are accepted up to the limit of all resources, and the one that exceeds it is not", () => {
  const { budget } = site();
  budget.accept("a", list(60));
  budget.accept("b", list(40));
  assert.throws(
    () => budget.accept("c", list(6)),
    /^Error: list of 6 devices with 6 bytes of ids: all device plugins may list 100 devices with 1000 bytes of ids, and others have 100 with 100$/,
  );
  budget.accept("a", list(54));
  budget.accept("c", list(6));
});

test("ids count by their bytes", () => {
  const { budget } = site();
  budget.accept("a", list(6, 150));
  assert.throws(() => budget.accept("b", list(2, 60)), /others have 6 with 900/);
});

test("a small list is accepted, whatever others list", () => {
  const { budget } = site();
  budget.accept("a", list(100));
  budget.accept("b", list(5, 10));
  assert.throws(() => budget.accept("b", list(6, 10)));
  assert.throws(() => budget.accept("b", list(5, 11)));
});

test("the devices of a resource count until they are removed", () => {
  const { budget, kept } = site();
  budget.accept("a", list(100));
  assert.throws(() => budget.accept("b", list(100)));
  kept.delete("a");
  budget.accept("b", list(100));
});
