import assert from "node:assert/strict";
import { test } from "node:test";
import { Listeners } from "./listeners.ts";

test("listeners are called in order until their signal aborts, the same function once for each time it was added", () => {
  const listeners = new Listeners<number>();
  const called: string[] = [];
  const [first, second] = [new AbortController(), new AbortController()];
  const fn = (value: number): void => void called.push(`a${value}`);
  listeners.add(fn, first);
  listeners.add((value) => called.push(`b${value}`), second);
  listeners.add(fn, second);
  listeners.call(1);
  first.abort();
  listeners.call(2);
  second.abort();
  listeners.call(3);
  listeners.add(fn, second);
  listeners.call(4);
  assert.deepEqual(called, ["a1", "b1", "a1", "b2", "a2"]);
});

test("a listener that an earlier one removed is not called any more, and one that it added not yet", () => {
  const listeners = new Listeners();
  const called: string[] = [];
  const stop = new AbortController();
  const { signal } = new AbortController();
  listeners.add(
    () => {
      called.push("first");
      stop.abort();
      listeners.add(() => called.push("late"), { signal });
    },
    { signal },
  );
  listeners.add(() => called.push("removed"), stop);
  listeners.call();
  assert.deepEqual(called, ["first"]);
});

test("the removal of the last listener is noticed, each time", () => {
  let emptied = 0;
  const listeners = new Listeners(() => emptied++);
  assert.equal(listeners.isEmpty, true);
  for (const round of [1, 2]) {
    const [first, second] = [new AbortController(), new AbortController()];
    listeners.add(() => undefined, first);
    listeners.add(() => undefined, second);
    first.abort();
    assert.deepEqual([listeners.isEmpty, emptied], [false, round - 1]);
    second.abort();
    assert.deepEqual([listeners.isEmpty, emptied], [true, round]);
  }
});
