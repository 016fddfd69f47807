import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "./clock.ts";
import { Wakes } from "./wakes.ts";

interface Sleeper {
  readonly clock: FakeClock;
  readonly wakes: Wakes;
  readonly stop: AbortController;
  sleep(ms?: number): Promise<{ isAwake: boolean }>;
}

function sleeper(): Sleeper {
  const clock = new FakeClock();
  const wakes = new Wakes(clock);
  const stop = new AbortController();
  const sleep = async (ms?: number): Promise<{ isAwake: boolean }> => {
    const state = { isAwake: false };
    void wakes.sleep(ms, stop.signal).then(() => {
      state.isAwake = true;
    });
    await clock.advance(0);
    return state;
  };
  return { clock, wakes, stop, sleep };
}

describe("Wakes", () => {
  test("a sleep ends by a wake-up, by its time, by the abort, and not before", async () => {
    const { clock, wakes, stop, sleep } = sleeper();
    const byWake = await sleep();
    assert.equal(byWake.isAwake, false);
    wakes.wake();
    await clock.advance(0);
    assert.equal(byWake.isAwake, true);
    const byTime = await sleep(100);
    await clock.advance(99);
    assert.equal(byTime.isAwake, false);
    await clock.advance(1);
    assert.equal(byTime.isAwake, true);
    const byAbort = await sleep();
    stop.abort();
    await clock.advance(0);
    assert.equal(byAbort.isAwake, true);
    assert.equal((await sleep()).isAwake, true);
  });

  test("a wake-up during the work ends the next sleep at once, and only that one", async () => {
    const { wakes, sleep } = sleeper();
    wakes.wake();
    wakes.wake();
    assert.equal((await sleep()).isAwake, true);
    assert.equal((await sleep()).isAwake, false);
  });

  test("what was told before a new look counts no more", async () => {
    const { wakes, sleep } = sleeper();
    wakes.wake();
    wakes.clear();
    assert.equal((await sleep()).isAwake, false);
  });
});
