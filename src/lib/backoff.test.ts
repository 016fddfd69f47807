import assert from "node:assert/strict";
import { test } from "node:test";
import { Backoff, type BackoffOptions, KeyedBackoff } from "./backoff.ts";

const at = (mono: number): { wall: number; mono: number } => ({ wall: 1e12 + mono, mono });

const cases: { name: string; options: BackoffOptions; failAt: number[]; want: number[] }[] = [
  {
    name: "doubles up to the maximum",
    options: { initialMs: 10, maxMs: 60 },
    failAt: [0, 10, 30, 70, 130],
    want: [10, 20, 40, 60, 60],
  },
  {
    name: "starts anew after the quiet time, counted from the end of the wait",
    options: { initialMs: 10, maxMs: 1000, resetAfterMs: 100 },
    failAt: [0, 10, 129, 10_000],
    want: [10, 20, 40, 10],
  },
  {
    name: "has its own factor",
    options: { initialMs: 1, maxMs: 1000, factor: 10 },
    failAt: [0, 1, 2, 3, 4],
    want: [1, 10, 100, 1000, 1000],
  },
  {
    name: "adds at most the jitter's share and stays under the maximum",
    options: { initialMs: 100, maxMs: 210, jitter: 0.5, random: () => 0.5 },
    failAt: [0, 200, 500],
    want: [125, 210, 210],
  },
];
for (const c of cases) {
  test(`back-off ${c.name}`, () => {
    const backoff = new Backoff(c.options);
    assert.deepEqual(
      c.failAt.map((mono) => backoff.next(at(mono))),
      c.want,
    );
  });
}

test("the maximum holds after thousands of failures", () => {
  const backoff = new Backoff({ initialMs: 1, maxMs: 300_000 });
  for (let i = 0; i < 5000; i++) backoff.next(at(i));
  assert.equal(backoff.next(at(5000)), 300_000);
});

test("remaining counts down on the monotonic clock, and a reset ends it", () => {
  const backoff = new Backoff({ initialMs: 10, maxMs: 100 });
  assert.equal(backoff.remaining(at(0)), 0);
  backoff.next(at(5));
  assert.equal(backoff.remaining({ wall: 0, mono: 8 }), 7);
  assert.equal(backoff.remaining(at(15)), 0);
  assert.equal(backoff.state?.failures, 1);
  backoff.reset();
  assert.equal(backoff.state, undefined);
  assert.equal(backoff.next(at(20)), 10);
});

test("keys do not know each other, and old ones are forgotten", () => {
  const backoff = new KeyedBackoff<string>({ initialMs: 10, maxMs: 100 });
  backoff.next("a", at(0));
  assert.equal(backoff.next("a", at(10)), 20);
  assert.equal(backoff.next("b", at(10)), 10);
  assert.equal(backoff.remaining("a", at(25)), 5);
  backoff.evictOlderThan(50, at(75));
  assert.equal(backoff.get("b"), undefined);
  assert.equal(backoff.get("a")?.failures, 2);
  backoff.reset("a");
  assert.equal(backoff.size, 0);
});
