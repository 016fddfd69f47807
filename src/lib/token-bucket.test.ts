import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { fixed, LiveValue } from "./live.ts";
import { TokenBucket } from "./token-bucket.ts";

const { signal } = new AbortController();

test("the burst is there at once, then the rate, and saved tokens end at the burst", async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, fixed({ qps: 5, burst: 3 }));
  const take = (): boolean[] => [1, 2, 3, 4].map(() => bucket.tryTake());
  assert.deepEqual(take(), [true, true, true, false]);
  await clock.advance(200);
  assert.deepEqual(take(), [true, false, false, false]);
  await clock.advance(60_000);
  assert.deepEqual(take(), [true, true, true, false]);
});

test("waiters are served in order, at the rate, and nobody passes them", async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, fixed({ qps: 2, burst: 1 }));
  const served: string[] = [];
  for (const name of ["a", "b", "c"])
    void bucket.take({ signal }).then(() => served.push(`${name}@${clock.now().mono}`));
  await clock.advance(499);
  assert.deepEqual(served, ["a@0"]);
  await clock.advance(1);
  assert.equal(bucket.tryTake(), false);
  await clock.advance(500);
  assert.deepEqual(served, ["a@0", "b@500", "c@1000"]);
  assert.equal(clock.waiting, 0);
});

test("an aborted waiter takes nothing and leaves no timer", async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, fixed({ qps: 1, burst: 1 }));
  const controller = new AbortController();
  await bucket.take({ signal });
  const waiting = bucket.take(controller);
  controller.abort("no");
  await assert.rejects(waiting, (error) => error === "no");
  assert.equal(clock.waiting, 0);
  await clock.advance(1000);
  assert.equal(bucket.tryTake(), true);
  await assert.rejects(bucket.take(controller), (error) => error === "no");
});

test("no rate means no limit, and a limit taken away frees those who wait", async () => {
  const clock = new FakeClock();
  const unlimited = new TokenBucket(clock, fixed({ qps: 0, burst: 0 }));
  for (let i = 0; i < 1000; i++) assert.ok(unlimited.tryTake());
  const options = new LiveValue({ qps: 0.001, burst: 1 });
  const bucket = new TokenBucket(clock, options);
  await bucket.take({ signal });
  let served = false;
  void bucket.take({ signal }).then(() => {
    served = true;
  });
  options.set({ qps: 0, burst: 1 });
  await clock.advance(1000);
  assert.equal(served, true);
});

test("a waiter is told how many are ahead, and each time that there are fewer", async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(clock, fixed({ qps: 1, burst: 1 }));
  const leaving = new AbortController();
  const ahead: number[] = [];
  await bucket.take({ signal });
  void bucket.take({ signal });
  const left = bucket.take(leaving);
  void bucket.take({ signal, onAhead: (count) => void ahead.push(count) });
  leaving.abort("left");
  await assert.rejects(left);
  await clock.advance(2000);
  assert.deepEqual(ahead, [2, 1, 0]);
});
