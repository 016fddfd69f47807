import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { CheckSlots } from "./check-slots.ts";
import type { VolumeCheck } from "./kind.ts";
import { CheckLoop } from "./volume-check.ts";

/** A loop that checks every 90 s, the first time after 25 s; returns when it did, in seconds. */
function follow(answer: (turn: number) => ReturnType<VolumeCheck["run"]> = () => Promise.resolve()) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const at: number[] = [];
  const errors: string[] = [];
  const loop = new CheckLoop(
    {
      clock,
      slots: new CheckSlots(clock),
      inTurn: (work) => work(),
      failed: (error) => void errors.push(String(error)),
      random: () => 25 / 90,
    },
    stop.signal,
  );
  const run: VolumeCheck["run"] = () => {
    at.push(clock.now().mono / 1000);
    return answer(at.length);
  };
  const check = { everyMs: 90_000, run };
  loop.follow(check);
  return { clock, loop, check, at, errors, stop };
}

test("a check comes once an interval, the first at any time of it", async () => {
  const { clock, at } = follow();
  await clock.advance(300_000);
  assert.deepEqual(at, [20, 110, 200, 290]);
});

test("a check that takes long does not make the next one late", async () => {
  const { clock, at } = follow(() => clock.sleep(4000));
  await clock.advance(300_000);
  assert.deepEqual(at, [20, 110, 200, 290]);
});

test("a new set-up has its own first check", async () => {
  const { clock, at, loop, check } = follow();
  await clock.advance(60_000);
  loop.follow(check);
  await clock.advance(60_000);
  assert.deepEqual(at, [20, 80]);
});

test("a failed check is reported and tried again with back-off", async () => {
  const { clock, at, errors } = follow(async (turn) => {
    if (turn <= 2) throw new Error("away");
  });
  await clock.advance(120_000);
  assert.deepEqual(
    [at, errors],
    [
      [20, 20.5, 21.5, 110],
      ["Error: away", "Error: away"],
    ],
  );
});

test("nothing is checked after the end", async () => {
  const { clock, at, stop } = follow();
  stop.abort();
  await clock.advance(300_000);
  assert.deepEqual([at, clock.waiting], [[], 0]);
});
