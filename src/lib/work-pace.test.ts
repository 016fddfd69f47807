import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "./clock.ts";
import { WorkPace } from "./work-pace.ts";

const OPTIONS = { pieceMs: 200, itemMs: 1, burstMs: 1000 };

/** Pieces of a sender without end that are done in this time. */
async function done(items: number, forMs: number, senders: readonly string[] = ["a"]): Promise<number> {
  const clock = new FakeClock();
  const pace = new WorkPace(clock, OPTIONS);
  const { signal } = new AbortController();
  let count = 0;
  for (const sender of senders) {
    void (async () => {
      for (;;) {
        await pace.turn(sender, { signal });
        count++;
        pace.spend(sender, items);
      }
    })();
  }
  await clock.advance(forMs);
  return count;
}

const cases = [
  { name: "small pieces are done at once up to the burst, then at their rate", items: 1, want: 6 + 10 },
  { name: "a piece of many items has others wait for as long as it is worth", items: 1500, want: 3 },
  { name: "nobody waits for another", items: 1500, senders: ["a", "b"], want: 6 },
];
for (const { name, items, want, senders } of cases) {
  test(name, async () => assert.equal(await done(items, 2000, senders), want));
}

test("work that does not wait asks whether it is due", async () => {
  const clock = new FakeClock();
  const pace = new WorkPace(clock, OPTIONS);
  pace.spend("a", 1500);
  assert.deepEqual([pace.isDue("a"), pace.isDue("b")], [false, true]);
  await clock.advance(500);
  assert.equal(pace.isDue("a"), true);
});

test("whoever waits can be aborted", async () => {
  const clock = new FakeClock();
  const pace = new WorkPace(clock, OPTIONS);
  pace.spend("a", 100_000);
  const stop = new AbortController();
  const waiting = pace.turn("a", { signal: stop.signal });
  stop.abort(new Error("stopped"));
  await assert.rejects(waiting, /stopped/);
  assert.equal(clock.waiting, 0);
});
