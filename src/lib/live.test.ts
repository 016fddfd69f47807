import assert from "node:assert/strict";
import { test } from "node:test";
import { fixed, LiveValue, select } from "./live.ts";

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
