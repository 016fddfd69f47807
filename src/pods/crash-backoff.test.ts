import assert from "node:assert/strict";
import { test } from "node:test";
import { afterRestart, type CrashState, crashWait, DEFAULT_CRASH_LIMITS } from "./crash-backoff.ts";

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
    name: "a run of more than ten minutes forgets the crashes",
    given: { crashes: 4, ranMs: 601_000 },
    want: [0, 0, 0, 0],
  },
];
for (const c of cases) test(c.name, () => assert.deepEqual(delays(c.given.crashes, c.given.ranMs), c.want));

test("time that passed since the end counts", () => {
  assert.equal(crashWait({ delayMs: 10_000, restartedAt: 0 }, 5000, 9000), 6000);
});

test("a wall clock set back does not wait longer than the delay", () => {
  assert.equal(crashWait({ delayMs: 10_000, restartedAt: 0 }, 5000, 1000), 10_000);
});
