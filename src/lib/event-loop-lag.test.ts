import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { EventLoopLag } from "./event-loop-lag.ts";

/** A clock whose timers fire late by what the test says. */
class LateClock extends FakeClock {
  lateMs = 0;
  override sleep(ms: number, options?: Parameters<FakeClock["sleep"]>[1]): Promise<void> {
    return super.sleep(ms + this.lateMs, options);
  }
}

test("lag is a problem only when it lasts, and until it ends", async () => {
  const clock = new LateClock();
  const lag = new EventLoopLag(clock);
  const stop = new AbortController();
  clock.lateMs = 2000;
  const running = lag.run(stop);
  for (const passed of [1, 2]) {
    await clock.advance(7000);
    assert.equal(lag.problem(), undefined, `after ${passed} late timers`);
  }
  await clock.advance(6999);
  clock.lateMs = 0;
  await clock.advance(1);
  assert.equal(lag.problem(), "the event loop is 2.0 s late, for 15 s or longer");
  await clock.advance(5000);
  assert.equal(lag.problem(), undefined);
  stop.abort();
  await running;
});
