import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortedError } from "./abort.ts";
import { FakeClock, SystemClock } from "./clock.ts";

test("the fake clock fires timers in order of their time, whatever the order in which they were set", async () => {
  const clock = new FakeClock();
  const fired: string[] = [];
  clock.after(30, () => fired.push(`c@${clock.now().mono}`));
  clock.after(10, () => fired.push(`a@${clock.now().mono}`));
  clock.after(20, () => fired.push(`b@${clock.now().mono}`)).cancel();
  await clock.advance(29);
  assert.deepEqual(fired, ["a@10"]);
  assert.equal(clock.nextIn, 1);
  await clock.advance(1);
  assert.deepEqual(fired, ["a@10", "c@30"]);
});

test("a timer set by a timer fires within the same advance when it is due", async () => {
  const clock = new FakeClock();
  const fired: number[] = [];
  clock.after(5, () => clock.after(5, () => fired.push(clock.now().mono)));
  await clock.advance(10);
  assert.deepEqual(fired, [10]);
});

test("setting the wall clock leaves waiting alone", async () => {
  const clock = new FakeClock({ wall: 1000, mono: 0 });
  let done = false;
  void clock.sleep(10).then(() => {
    done = true;
  });
  clock.setWall(5_000_000);
  await clock.advance(9);
  assert.equal(done, false);
  await clock.advance(1);
  assert.equal(done, true);
  assert.deepEqual(clock.now(), { wall: 5_000_010, mono: 10 });
});

test("an aborted sleep rejects with the reason and leaves no timer", async () => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const sleeping = clock.sleep(1000, { signal: controller.signal });
  const reason = new AbortedError();
  controller.abort(reason);
  await assert.rejects(sleeping, (error) => error === reason);
  assert.equal(clock.waiting, 0);
  await assert.rejects(clock.sleep(1, { signal: controller.signal }), (error) => error === reason);
});

test("the system clock never calls early and never synchronously", async () => {
  const clock = new SystemClock();
  for (const ms of [0, -5, 0.4, 1.7]) {
    const start = clock.now().mono;
    let called = false;
    const early = await new Promise<number>((resolve) => {
      clock.after(ms, () => {
        called = true;
        resolve(clock.now().mono - start - ms);
      });
      assert.equal(called, false);
    });
    assert.ok(early >= 0, `${ms} ms came ${early} ms early`);
  }
});

test("the system clock does not fire a wait of months at once", async () => {
  const clock = new SystemClock();
  let fired = false;
  const timer = clock.after(90 * 24 * 3600 * 1000, () => {
    fired = true;
  });
  await clock.sleep(3);
  timer.cancel();
  assert.equal(fired, false);
});
