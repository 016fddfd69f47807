import assert from "node:assert/strict";
import { test } from "node:test";
import type { Observation, Signal } from "./signals.ts";
import { ThresholdWarnings, unmeasured } from "./threshold-warnings.ts";
import { thresholdsOf } from "./thresholds.ts";

const MI = 2 ** 20;

function thresholds(evictionHard: Readonly<Record<string, string>>, evictionMinimumReclaim = {}) {
  return thresholdsOf({
    evictionHard,
    evictionSoft: {},
    evictionSoftGracePeriod: {},
    evictionMinimumReclaim,
    enforceNodeAllocatable: [],
  });
}

function observed(capacities: Partial<Record<Signal, number>>): ReadonlyMap<Signal, Observation> {
  const at = { wall: 0, mono: 0 };
  const entries = Object.entries(capacities) as [Signal, number][]; // reason: the keys are signals
  return new Map(entries.map(([signal, capacity]) => [signal, { available: capacity, capacity, at }]));
}

function site() {
  const lines: string[] = [];
  const write = (level: string) => (message: string, fields?: object) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  return { lines, warnings: new ThresholdWarnings({ warn: write("warn"), info: write("info") }) };
}

test("a signal that is missing for a minute is warned of once, and its return is reported", () => {
  const { lines, warnings } = site();
  const given = thresholds({ "imagefs.inodesFree": "5%" });
  const seen = observed({ "imagefs.inodesFree": 1000 });
  warnings.check(given, seen, 0);
  for (const now of [1000, 60_000]) warnings.check(given, new Map(), now);
  warnings.check(given, seen, 60_500);
  warnings.check(given, new Map(), 61_000);
  assert.deepEqual(lines, []);
  for (const now of [121_000, 122_000, 200_000]) warnings.check(given, new Map(), now);
  const words = "Eviction signal cannot be measured, its thresholds are not acted on";
  assert.deepEqual(lines, [`warn ${words} {"signal":"imagefs.inodesFree"}`]);
  warnings.check(given, seen, 201_000);
  assert.equal(lines.at(-1), 'info Eviction signal is measured again {"signal":"imagefs.inodesFree"}');
  assert.equal(lines.length, 2);
});

test("a threshold above the capacity is warned of once, another one again, and the whole capacity is none", () => {
  const { lines, warnings } = site();
  const seen = observed({ "nodefs.available": 100 * MI, "pid.available": 1000 });
  for (const now of [0, 1])
    warnings.check(thresholds({ "nodefs.available": "1Gi", "pid.available": "1000" }), seen, now);
  const words = "warn Eviction threshold exceeds the capacity, once it is met pods are evicted until none is left";
  const first = `${words} {"signal":"nodefs.available","threshold":"1Gi","capacity":"100Mi"}`;
  assert.deepEqual(lines, [first]);
  warnings.check(thresholds({ "pid.available": "1001" }), seen, 2);
  assert.deepEqual(lines, [first, `${words} {"signal":"pid.available","threshold":"1001","capacity":"1k"}`]);
});

test("a threshold that its minimum reclaim brings above the capacity is warned of", () => {
  const { lines, warnings } = site();
  const seen = observed({ "nodefs.available": 100 * MI, "pid.available": 1000 });
  const reclaims = { "nodefs.available": "80Mi", "pid.available": "50%" };
  warnings.check(thresholds({ "nodefs.available": "20%", "pid.available": "501" }, reclaims), seen, 0);
  assert.deepEqual(lines, [
    'warn Eviction threshold exceeds the capacity, once it is met pods are evicted until none is left {"signal":"pid.available","threshold":"501","minimumReclaim":"500","capacity":"1k"}',
  ]);
});

test("signals without a measurement, each once", () => {
  const given = thresholds({ "nodefs.available": "1Gi", "memory.available": "1Mi" });
  assert.deepEqual(unmeasured([...given, ...given], observed({ "memory.available": 1 })), ["nodefs.available"]);
});
