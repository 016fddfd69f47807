import assert from "node:assert/strict";
import { test } from "node:test";
import { Trends } from "./trends.ts";

function recorded(points: readonly (readonly [seconds: number, available: number])[]): Trends {
  const trends = new Trends();
  for (const [seconds, available] of points) {
    const at = { wall: 0, mono: seconds * 1000 };
    trends.record(new Map([["memory.available", { available, capacity: 1000, at }]]));
  }
  return trends;
}

test("a trend is the change a second over the last minute, from two points on", () => {
  assert.equal(recorded([[0, 100]]).perSecond("memory.available"), undefined);
  assert.equal(recorded([]).perSecond("memory.available"), undefined);
  const falling = [
    [0, 1000],
    [100, 500],
    [130, 200],
  ] as const;
  assert.equal(recorded(falling).perSecond("memory.available"), -10, "what is older than a minute does not count");
});

test("readings within a second are one point", () => {
  const near = [
    [0, 100],
    [0.5, 0],
    [2, 80],
  ] as const;
  assert.equal(recorded(near).perSecond("memory.available"), -10);
  assert.equal(recorded([...near, [2.5, 0]]).perSecond("memory.available"), -10);
});
