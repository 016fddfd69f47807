import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/clock.ts";
import { untilTrue } from "./first-list.ts";

function waiting(holds: () => boolean) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const seen = { isOver: false };
  const wait = untilTrue(holds, { clock, ms: 10_000 }, stop.signal).then(() => {
    seen.isOver = true;
  });
  return { clock, stop, seen, wait };
}

test("a condition is waited for until it holds, but no longer than the time", async () => {
  let isTrue = false;
  const { clock, seen } = waiting(() => isTrue);
  await clock.advance(5000);
  assert.equal(seen.isOver, false);
  isTrue = true;
  await clock.advance(100);
  assert.equal(seen.isOver, true);
  const never = waiting(() => false);
  await never.clock.advance(9900);
  assert.equal(never.seen.isOver, false);
  await never.clock.advance(200);
  assert.equal(never.seen.isOver, true);
});

test("an abort ends the wait, and is no error", async () => {
  const { stop, wait, seen } = waiting(() => false);
  stop.abort();
  await wait;
  assert.equal(seen.isOver, true);
});
