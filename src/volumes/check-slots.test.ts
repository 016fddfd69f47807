import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { CheckSlots } from "./check-slots.ts";

const EVERY_MS = 90_000;

/** Books checks within so many seconds each; returns how many ran at which second. */
function book(seconds: readonly number[], startMs = 0) {
  const clock = new FakeClock({ wall: 0, mono: startMs });
  const slots = new CheckSlots(clock);
  const ran = new Map<number, number>();
  const check = (): void => {
    const at = (clock.now().mono - startMs) / 1000;
    ran.set(at, (ran.get(at) ?? 0) + 1);
  };
  const timers = seconds.map((within) => slots.book(() => check(), { withinMs: within * 1000, everyMs: EVERY_MS }));
  return { clock, slots, ran, timers };
}

describe("checks of many volumes", () => {
  test("run together, with one timer, and never later than they are due", async () => {
    const { clock, ran } = book([20, 21, 25.5, 29.9, 30]);
    assert.equal(clock.waiting, 2);
    await clock.advance(EVERY_MS);
    assert.deepEqual(
      [...ran],
      [
        [20, 4],
        [30, 1],
      ],
    );
  });

  test("run at the same times, whenever they were booked", async () => {
    const { clock, slots, ran } = book([31.5], 1000);
    await clock.advance(5000);
    slots.book(() => ran.set(0, 1), { withinMs: 33_000, everyMs: EVERY_MS });
    assert.equal(clock.waiting, 1);
    await clock.advance(EVERY_MS);
    assert.deepEqual(
      [...ran],
      [
        [29, 1],
        [0, 1],
      ],
    );
  });

  test("are at most 25 at a time: more run a little earlier, and never all at once", async () => {
    const { clock, ran } = book(Array.from({ length: 60 }, () => 45));
    await clock.advance(EVERY_MS);
    assert.deepEqual(
      [...ran],
      [
        [38, 10],
        [39, 25],
        [40, 25],
      ],
    );
  });

  test("that are due before the next slot, or find none, run when they are due", async () => {
    const { clock, ran } = book([4.5, 10, ...Array.from({ length: 250 }, () => 10.5)]);
    await clock.advance(EVERY_MS);
    assert.deepEqual([ran.get(4.5), ran.get(10.5)], [1, 1]);
    assert.equal(
      [...ran.values()].reduce((sum, count) => sum + count),
      252,
    );
    assert.ok([...ran.values()].every((count) => count <= 25));
  });

  test("that are cancelled do not run, and give their place back", async () => {
    const { clock, slots, ran, timers } = book(Array.from({ length: 25 }, () => 20));
    timers[0]?.cancel();
    timers[0]?.cancel();
    slots.book(() => ran.set(0, 1), { withinMs: 20_000, everyMs: EVERY_MS });
    for (const timer of timers.slice(1, 20)) timer.cancel();
    await clock.advance(EVERY_MS);
    assert.deepEqual(
      [...ran],
      [
        [20, 5],
        [0, 1],
      ],
    );
    const alone = book([20]);
    alone.timers[0]?.cancel();
    assert.equal(alone.clock.waiting, 0);
  });
});
