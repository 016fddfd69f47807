import assert from "node:assert/strict";
import { test } from "node:test";
import {
  afterRestart,
  type CrashState,
  crashKey,
  crashLimits,
  crashWait,
  DEFAULT_CRASH_LIMITS,
  formatCrash,
  parseCrash,
} from "./crash-backoff.ts";

/** Delays between the end of a container and its next start, when every run lasts `ranMs`. */
function delays(crashes: number, ranMs: number): number[] {
  let state: CrashState | undefined;
  let wall = 1_000_000;
  const waited: number[] = [];
  for (let i = 0; i < crashes; i++) {
    const finishedAt = wall + ranMs;
    const wait = Math.max(0, crashWait(state, finishedAt, finishedAt));
    waited.push(wait / 1000);
    wall = finishedAt + wait;
    state = afterRestart(state, { finishedAt, wallNow: wall }, DEFAULT_CRASH_LIMITS);
  }
  return waited;
}

const cases = [
  {
    name: "quick crashes wait 0, 10, 20 … 300 s",
    given: { crashes: 8, ranMs: 2000 },
    want: [0, 10, 20, 40, 80, 160, 300, 300],
  },
  {
    name: "a run of more than ten minutes resets the back-off",
    given: { crashes: 4, ranMs: 601_000 },
    want: [0, 0, 0, 0],
  },
];
for (const c of cases) test(c.name, () => assert.deepEqual(delays(c.given.crashes, c.given.ranMs), c.want));

test("time that passed since the termination counts", () => {
  assert.equal(crashWait({ delayMs: 10_000, restartedAt: 0 }, 5000, 9000), 6000);
});

test("a wall clock set back does not wait longer than the delay", () => {
  assert.equal(crashWait({ delayMs: 10_000, restartedAt: 0 }, 5000, 1000), 10_000);
});

test("a crash history is parsed as it was recorded, and nothing else is", () => {
  const state = { delayMs: 20_000, restartedAt: 1_700_000_000_000 };
  const keyed = { ...state, key: crashKey({ image: "app:1" }) };
  for (const one of [state, keyed]) assert.deepEqual(parseCrash(formatCrash(one)), one);
  for (const text of [
    undefined,
    "",
    "{}",
    '{"delayMs":-1,"restartedAt":5}',
    '{"delayMs":1,"restartedAt":5,"key":7}',
    "x",
  ])
    assert.equal(parseCrash(text), undefined);
});

test("the maximum may change while containers crash", () => {
  let maxMs: number | undefined = 15_000;
  const limits = crashLimits(() => maxMs);
  const first = afterRestart(undefined, { finishedAt: 0, wallNow: 0 }, limits);
  const second = afterRestart(first, { finishedAt: 1, wallNow: 1 }, limits);
  maxMs = undefined;
  const third = afterRestart(second, { finishedAt: 2, wallNow: 2 }, limits);
  assert.deepEqual([first.delayMs, second.delayMs, third.delayMs], [10_000, 15_000, 30_000]);
});

test("the key of a crash history is the image and the resources, in whatever order they are written", () => {
  const resources = { limits: { cpu: "1", memory: "1Gi" } };
  const key = crashKey({ image: "app:1", resources });
  assert.equal(crashKey({ image: "app:1", resources: { limits: { memory: "1Gi", cpu: "1" } } }), key);
  assert.notEqual(crashKey({ image: "app:2", resources }), key);
  assert.notEqual(crashKey({ image: "app:1", resources: { limits: { cpu: "2", memory: "1Gi" } } }), key);
});
