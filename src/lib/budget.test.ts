import assert from "node:assert/strict";
import { test } from "node:test";
import { Budget } from "./budget.ts";

test("no more is taken than there is, and a part is returned once", () => {
  const budget = new Budget(10);
  const six = budget.take(6);
  assert.equal(budget.take(5), undefined);
  assert.ok(budget.take(4) !== undefined);
  assert.equal(budget.take(1), undefined);
  six?.();
  six?.();
  assert.ok(budget.take(6) !== undefined);
  assert.equal(budget.take(1), undefined);
});
