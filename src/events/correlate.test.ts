import assert from "node:assert/strict";
import { test } from "node:test";
import { EventCorrelator, type EventFacts } from "./correlate.ts";

const about = { kind: "Pod", namespace: "default", name: "web", uid: "u" } as const;
const facts = (message: string, reason = "Failed"): EventFacts => ({ type: "Warning", reason, message, about });
const at = (ms: number) => ({ mono: ms, wall: ms });

test("equal events are one series with a count", () => {
  const correlator = new EventCorrelator();
  const first = correlator.take(facts("a"), at(0));
  const second = correlator.take(facts("a"), at(1000));
  assert.equal(second?.series, first?.series);
  assert.deepEqual([second?.series.count, second?.series.first, second?.series.last], [2, 0, 1000]);
});

test("many similar events become one", () => {
  const correlator = new EventCorrelator();
  const taken = Array.from({ length: 13 }, (_, n) => correlator.take(facts(`try ${n}`), at(n)));
  assert.equal(taken[0]?.facts.message, "try 0");
  assert.equal(taken[11]?.facts.message, "(combined from similar events): try 11");
  assert.equal(taken[12]?.facts.message, "(combined from similar events): try 12");
  assert.equal(taken[12]?.series, taken[11]?.series);
  assert.equal(taken[12]?.series.count, 3);
});

test("after ten minutes similar events are told by themselves again", () => {
  const correlator = new EventCorrelator();
  for (let n = 0; n < 12; n++) correlator.take(facts(`try ${n}`), at(n));
  assert.equal(correlator.take(facts("try 99"), at(700_000))?.facts.message, "try 99");
});

test("one object that makes too many is held back, others are not", () => {
  const correlator = new EventCorrelator();
  const passed = Array.from({ length: 40 }, (_, n) => correlator.take(facts(`m${n}`, `R${n}`), at(n))).filter(
    (one) => one !== undefined,
  );
  assert.equal(passed.length, 25);
  const other = { ...facts("m"), about: { ...about, uid: "other" } };
  assert.notEqual(correlator.take(other, at(50)), undefined);
  assert.notEqual(correlator.take(facts("later", "Later"), at(400_000)), undefined);
});

test("a series is counted also while it is held back", () => {
  const correlator = new EventCorrelator();
  for (let n = 0; n < 30; n++) correlator.take(facts("same"), at(n));
  assert.equal(correlator.take(facts("same"), at(700_000))?.series.count, 31);
});
