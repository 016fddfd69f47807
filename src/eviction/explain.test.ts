import assert from "node:assert/strict";
import { test } from "node:test";
import { pod } from "../../test/support/pods.ts";
import { NO_PRESSURE } from "./assess.ts";
import { reportRanking, reportSignals } from "./explain.ts";
import type { RankedPod } from "./rank.ts";
import type { Observation, Signal } from "./signals.ts";
import { keyOf, thresholdsOf } from "./thresholds.ts";
import { Trends } from "./trends.ts";

const MI = 2 ** 20;
const thresholds = thresholdsOf({
  evictionHard: { "memory.available": "100Mi" },
  evictionSoft: { "memory.available": "50%" },
  evictionSoftGracePeriod: { "memory.available": "30s" },
  evictionMinimumReclaim: {},
  enforceNodeAllocatable: [],
});

function observed(signal: Signal, available: number, mono: number): ReadonlyMap<Signal, Observation> {
  return new Map([[signal, { available, capacity: 1000 * MI, at: { wall: 0, mono } }]]);
}

test("a signal: its amount, its trend, and how long each of its thresholds has been met", () => {
  const trends = new Trends();
  trends.record(observed("memory.available", 500 * MI, 0));
  trends.record(observed("memory.available", 400 * MI, 10_000));
  const [, soft] = thresholds;
  const state = { ...NO_PRESSURE, metSince: new Map([[soft === undefined ? "" : keyOf(soft), 4000]]) };
  const known = { state, trends, now: 10_000 };
  assert.deepEqual(reportSignals(observed("memory.available", 400 * MI, 10_000), thresholds, known), [
    {
      signal: "memory.available",
      unit: "bytes",
      available: 400 * MI,
      capacity: 1000 * MI,
      perSecond: -10 * MI,
      thresholds: [
        { kind: "hard", value: 100 * MI, graceMs: 0 },
        { kind: "soft", value: 500 * MI, graceMs: 30_000, metForMs: 6000 },
      ],
    },
  ]);
});

test("a signal without thresholds, and without a trend yet", () => {
  const known = { state: NO_PRESSURE, trends: new Trends(), now: 0 };
  for (const [signal, unit] of [
    ["pid.available", "count"],
    ["nodefs.inodesFree", "count"],
    ["nodefs.available", "bytes"],
  ] as const) {
    const want = { signal, unit, available: 5, capacity: 1000 * MI, thresholds: [] };
    assert.deepEqual(reportSignals(observed(signal, 5, 0), thresholds, known), [want]);
  }
});

function ranked(more: Partial<RankedPod>): RankedPod {
  const of = pod("p").container("c").build();
  return { pod: of, priority: 3, usage: 5 * MI, request: 2 * MI, exceedsRequest: true, isCritical: false, ...more };
}

const reasons: { name: string; signal: Signal; given: Partial<RankedPod>; want: string }[] = [
  { name: "above its request", signal: "memory.available", given: {}, want: "exceeds its request by 3Mi" },
  { name: "within it", signal: "memory.available", given: { exceedsRequest: false }, want: "within its request" },
  { name: "critical", signal: "memory.available", given: { isCritical: true }, want: "critical, never evicted" },
  { name: "not measured", signal: "memory.available", given: { usage: undefined }, want: "not measured" },
  { name: "disk", signal: "nodefs.available", given: {}, want: "exceeds its request by 3Mi" },
  { name: "process ids", signal: "pid.available", given: { usage: 7, request: 0 }, want: "has 7" },
  { name: "inodes", signal: "nodefs.inodesFree", given: { usage: 70, request: 0 }, want: "has 70" },
];
for (const { name, signal, given, want } of reasons) {
  test(`a place in the ranking: ${name}`, () => {
    const [report] = reportRanking(signal, [ranked(given)]).pods;
    assert.deepEqual([report?.why, report?.name, report?.priority], [want, "p", 3]);
    assert.equal(report?.usage, "usage" in given ? given.usage : 5 * MI);
    assert.equal("usage" in (report ?? {}), !("usage" in given) || given.usage !== undefined);
  });
}

test("a ranking names its resource and its unit", () => {
  const of = (signal: Signal): string[] => {
    const { resource, unit } = reportRanking(signal, []);
    return [resource, unit];
  };
  assert.deepEqual(of("allocatableMemory.available"), ["memory", "bytes"]);
  assert.deepEqual(of("imagefs.available"), ["ephemeral-storage", "bytes"]);
  assert.deepEqual(of("pid.available"), ["pids", "count"]);
});
