import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Assessment, type AssessmentFacts, assess, NO_PRESSURE, nextCheckMs } from "./assess.ts";
import type { Observation, PressureCondition, Signal } from "./signals.ts";
import { keyOf, thresholdsOf } from "./thresholds.ts";

const MI = 2 ** 20;
const thresholds = thresholdsOf({
  evictionHard: { "nodefs.available": "10Mi", "memory.available": "100Mi", "pid.available": "1000" },
  evictionSoft: { "memory.available": "200Mi" },
  evictionSoftGracePeriod: { "memory.available": "30s" },
  evictionMinimumReclaim: { "memory.available": "50Mi" },
  enforceNodeAllocatable: [],
});

/** One assessment after the other: what was available at which time. */
class Series {
  last: Assessment = { state: NO_PRESSURE, conditions: [], starved: [] };
  facts: AssessmentFacts | undefined;
  readonly relievedAt = new Map<PressureCondition, number>();

  at(now: number, available: Partial<Record<Signal, number>>): this {
    const observations = new Map<Signal, Observation>();
    const given = { "memory.available": 8000 * MI, "nodefs.available": 8000 * MI, ...available };
    for (const [signal, left] of Object.entries(given)) {
      observations.set(signal as Signal, { available: left, capacity: 16_000 * MI, at: { wall: 0, mono: now } });
    }
    this.facts = { thresholds, observations, transitionMs: 300_000, now, relievedAt: this.relievedAt };
    this.last = assess(this.last.state, this.facts);
    return this;
  }

  get starved(): string[] {
    return this.last.starved.map(keyOf);
  }

  get nextMs(): number {
    return this.facts === undefined ? 0 : nextCheckMs(this.last, this.facts);
  }
}

const HARD = "memory.available 0 100Mi";
const SOFT = "memory.available 30000 200Mi";

describe("assessment", () => {
  test("enough of everything: no condition, nothing starved", () => {
    const { last } = new Series().at(0, {});
    assert.deepEqual([last.conditions, last.starved], [[], []]);
  });

  test("a hard threshold is acted on at once", () => {
    const series = new Series().at(0, { "memory.available": 99 * MI });
    assert.deepEqual([series.last.conditions, series.starved], [["MemoryPressure"], [HARD]]);
  });

  test("a soft threshold raises its condition at once, and is acted on after its grace period", () => {
    const series = new Series().at(0, { "memory.available": 150 * MI });
    assert.deepEqual([series.last.conditions, series.starved], [["MemoryPressure"], []]);
    series.at(29_999, { "memory.available": 150 * MI });
    assert.deepEqual(series.starved, []);
    series.at(30_000, { "memory.available": 150 * MI });
    assert.deepEqual(series.starved, [SOFT]);
  });

  test("a soft threshold that is not met in between starts its grace period anew", () => {
    const series = new Series().at(0, { "memory.available": 150 * MI }).at(20_000, {});
    series.at(30_000, { "memory.available": 150 * MI }).at(50_000, { "memory.available": 150 * MI });
    assert.deepEqual(series.starved, []);
  });

  test("once acted on, a threshold counts until its minimum reclaim is there", () => {
    const series = new Series().at(0, { "memory.available": 99 * MI });
    series.at(1000, { "memory.available": 149 * MI });
    assert.ok(series.starved.includes(HARD), series.starved.join());
    series.at(2000, { "memory.available": 150 * MI });
    assert.ok(!series.starved.includes(HARD), series.starved.join());
  });

  test("before it was acted on, the minimum reclaim of a threshold does not count", () => {
    const series = new Series().at(0, { "memory.available": 249 * MI });
    assert.deepEqual([series.last.conditions, series.starved], [[], []]);
  });

  test("a condition stays for the transition period after it was last observed", () => {
    const series = new Series().at(0, { "memory.available": 99 * MI }).at(10_000, { "memory.available": 99 * MI });
    series.at(309_999, {});
    assert.deepEqual(series.last.conditions, ["MemoryPressure"]);
    series.at(310_000, {});
    assert.deepEqual(series.last.conditions, []);
  });

  test("memory comes before disks, whatever the order of the settings", () => {
    const series = new Series().at(0, { "memory.available": 0, "nodefs.available": 0 });
    assert.deepEqual(series.last.conditions, ["MemoryPressure", "DiskPressure"]);
    assert.deepEqual(series.starved, [HARD, "nodefs.available 0 10Mi"]);
  });

  test("after an eviction only what was measured after its end counts", () => {
    const series = new Series();
    series.relievedAt.set("MemoryPressure", 5000);
    series.at(5000, { "memory.available": 0, "nodefs.available": 0 });
    assert.deepEqual(series.starved, ["nodefs.available 0 10Mi"], "other conditions go on");
    series.at(5001, { "memory.available": 0 });
    assert.deepEqual(series.starved, [HARD]);
  });

  test("a signal that cannot be read meets no threshold", () => {
    const facts: AssessmentFacts = {
      thresholds,
      observations: new Map(),
      transitionMs: 0,
      now: 0,
      relievedAt: new Map(),
    };
    assert.deepEqual(assess(NO_PRESSURE, facts).starved, []);
  });

  test("what was short and cannot be measured any more is not over: its condition stays, and nothing is evicted for it", () => {
    const series = new Series().at(0, { "nodefs.available": 0 });
    const { facts } = series;
    assert.ok(facts !== undefined);
    const blind = (now: number, state = series.last.state): Assessment =>
      assess(state, { ...facts, observations: new Map(), now });
    const hours = blind(3_600_000, blind(1000).state);
    assert.deepEqual([hours.conditions, hours.starved], [["DiskPressure"], []]);
    series.last = hours;
    series.at(3_601_000, { "nodefs.available": 0 });
    assert.deepEqual(series.starved, ["nodefs.available 0 10Mi"]);
    series.at(3_602_000, {}).at(3_902_000, {});
    assert.deepEqual(series.last.conditions, []);
  });

  test("the grace period of a soft threshold does not begin anew because of one measurement that failed", () => {
    const series = new Series().at(0, { "memory.available": 150 * MI });
    const { facts } = series;
    assert.ok(facts !== undefined);
    series.last = assess(series.last.state, { ...facts, observations: new Map(), now: 20_000 });
    series.at(30_000, { "memory.available": 150 * MI });
    assert.deepEqual(series.starved, [SOFT]);
  });

  test("a threshold that the settings no longer have is dropped, also if its minimum reclaim is not there", () => {
    const series = new Series().at(0, { "memory.available": 99 * MI });
    const facts = series.facts;
    assert.ok(facts !== undefined);
    const later = assess(series.last.state, { ...facts, thresholds: [], now: 1000 });
    assert.deepEqual([later.starved, later.state.metSince.size], [[], 0]);
  });
});

describe("the next check", () => {
  const cases: { name: string; available: Partial<Record<Signal, number>>; want: number }[] = [
    { name: "memory is far: every second", available: { "memory.available": 15_000 * MI }, want: 1000 },
    {
      name: "1 GiB above a threshold for memory: a second at 1 GiB/s",
      available: { "memory.available": 1224 * MI },
      want: 1000,
    },
    { name: "very near: ten times a second", available: { "memory.available": 201 * MI }, want: 100 },
    { name: "near, of process ids: four times a second", available: { "pid.available": 1001 }, want: 250 },
    { name: "near, on disk: once a second", available: { "nodefs.available": 11 * MI }, want: 1000 },
  ];
  for (const { name, available, want } of cases) {
    test(name, () => assert.equal(Math.round(new Series().at(0, available).nextMs), want));
  }

  test("disks alone: until they could be full, or the longest interval", () => {
    const only = (left: number): number => {
      const { last, facts } = new Series().at(0, { "nodefs.available": left });
      return facts === undefined ? 0 : nextCheckMs(last, facts, "DiskPressure");
    };
    assert.deepEqual([only(15_000 * MI), only(8010 * MI), only(0)], [10_000, 7812.5, 1000]);
  });

  test("a met soft threshold is looked at when its grace period ends, and while a hard one is near", () => {
    const series = new Series().at(0, { "memory.available": 199 * MI }).at(29_950, { "memory.available": 199 * MI });
    assert.equal(Math.round(series.nextMs), 100);
  });

  test("of a disk alone: when the grace period of its soft threshold ends, and when its condition does", () => {
    const disk = thresholdsOf({
      evictionHard: {},
      evictionSoft: { "nodefs.available": "10Mi" },
      evictionSoftGracePeriod: { "nodefs.available": "30s" },
      evictionMinimumReclaim: {},
      enforceNodeAllocatable: [],
    });
    const facts = (now: number, available: number): AssessmentFacts => ({
      thresholds: disk,
      observations: new Map([["nodefs.available", { available, capacity: 16_000 * MI, at: { wall: 0, mono: now } }]]),
      transitionMs: 300_000,
      now,
      relievedAt: new Map(),
    });
    const short = assess(NO_PRESSURE, facts(0, 0));
    const later = assess(short.state, facts(25_500, 0));
    assert.equal(nextCheckMs(later, facts(25_500, 0)), 4500);
    const enough = assess(later.state, facts(320_500, 15_000 * MI));
    assert.deepEqual([enough.conditions, nextCheckMs(enough, facts(320_500, 15_000 * MI))], [["DiskPressure"], 5000]);
  });

  test("the end of a condition is not missed", () => {
    const series = new Series().at(0, { "nodefs.available": 0 });
    series.at(299_500, {});
    assert.deepEqual([series.last.conditions, series.nextMs], [["DiskPressure"], 1000]);
  });
});
