import assert from "node:assert/strict";
import { test } from "node:test";
import { AbortedError } from "./abort.ts";
import { FakeClock } from "./clock.ts";
import { derive, fixed, LiveValue, select, sleepLive } from "./live.ts";

test("listeners hear changes until their signal aborts, and equal values are no change", () => {
  const live = new LiveValue(1);
  const controller = new AbortController();
  const heard: number[] = [];
  live.onChange((value) => heard.push(value), { signal: controller.signal });
  live.set(1);
  live.set(2);
  controller.abort();
  live.set(3);
  assert.deepEqual(heard, [2]);
  assert.equal(live.current, 3);
});

test("one function registered twice is heard twice and ended one by one", () => {
  const live = new LiveValue(0);
  const [a, b] = [new AbortController(), new AbortController()];
  let calls = 0;
  const fn = (): void => void calls++;
  live.onChange(fn, a);
  live.onChange(fn, b);
  live.set(1);
  assert.equal(calls, 2);
  a.abort();
  live.set(2);
  assert.equal(calls, 3);
});

test("a listener that sets again does not make later listeners hear the values backwards", () => {
  const live = new LiveValue(0);
  const { signal } = new AbortController();
  const heard: number[] = [];
  live.onChange(
    (value) => {
      if (value === 1) live.set(2);
    },
    { signal },
  );
  live.onChange((value) => heard.push(value), { signal });
  live.set(1);
  assert.deepEqual(heard, [2]);
});

test("a derived value is computed once for each value of its source", () => {
  const live = new LiveValue({ text: "1" });
  let calls = 0;
  const heard: number[] = [];
  const derived = derive(live, ({ text }) => {
    calls++;
    return Number(text);
  });
  derived.onChange((value) => heard.push(value), new AbortController());
  assert.deepEqual([derived.current, derived.current, calls], [1, 1, 1]);
  live.set({ text: "2" });
  assert.deepEqual([derived.current, derived.current, calls], [2, 2, 2]);
  assert.deepEqual(heard, [2]);
});

test("a selection hears only changes of its part", () => {
  const live = new LiveValue({ a: 1, b: 1 });
  const heard: number[] = [];
  const a = select(live, (value) => value.a);
  a.onChange((value) => heard.push(value), new AbortController());
  live.set({ a: 1, b: 2 });
  live.set({ a: 5, b: 2 });
  assert.deepEqual(heard, [5]);
  assert.equal(a.current, 5);
  assert.equal(fixed("x").current, "x");
});

test("a live sleep ends when the newest value says, counted from its beginning, and leaves no timer", async () => {
  const clock = new FakeClock();
  const ms = new LiveValue(1000);
  const controller = new AbortController();
  let ended = 0;
  const sleep = (): void => void sleepLive(clock, ms, controller).then(() => ended++);
  sleep();
  await clock.advance(400);
  ms.set(500);
  await clock.advance(99);
  assert.equal(ended, 0);
  await clock.advance(1);
  assert.equal(ended, 1);
  sleep();
  await clock.advance(300);
  ms.set(200);
  await clock.advance(0);
  assert.equal(ended, 2);
  const aborted = assert.rejects(sleepLive(clock, ms, controller), AbortedError);
  controller.abort(new AbortedError());
  await aborted;
  assert.equal(clock.waiting, 0);
});
