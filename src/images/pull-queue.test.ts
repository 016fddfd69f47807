import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "../lib/abort.ts";
import { FakeClock } from "../lib/clock.ts";
import { fixed } from "../lib/live.ts";
import { PullQueue } from "./pull-queue.ts";

/** A queue of one pull at a time; what is recorded of a pull takes until the test says so. */
function queue() {
  const clock = new FakeClock();
  const { signal } = manyListeners();
  const pulls = new PullQueue(clock, fixed({ parallel: 1, qps: 0, burst: 0 }), signal);
  const happened: string[] = [];
  const recorded: (() => void)[] = [];
  const run = (image: string): Promise<string> =>
    pulls.run(
      {
        image,
        arrived: async () => void happened.push(`looked for ${image}`),
        pull: async () => {
          happened.push(`pulled ${image}`);
          return image;
        },
        pulled: () => new Promise<void>((resolve) => recorded.push(resolve)),
      },
      { signal, onDetail: () => undefined },
    );
  return { clock, happened, recorded, run };
}

test("the record of a pull keeps no other image waiting", async () => {
  const { clock, happened, run } = queue();
  void run("a:1");
  void run("b:1");
  await clock.advance(0);
  assert.deepEqual(happened, ["pulled a:1", "pulled b:1"]);
});

test("the next pull of an image waits for the record of the one before", async () => {
  const { clock, happened, recorded, run } = queue();
  let isDone = false;
  void run("a:1").then(() => (isDone = true));
  void run("a:1");
  await clock.advance(0);
  assert.deepEqual(happened, ["pulled a:1"]);
  assert.equal(isDone, false, "nor does its own pod start before it");
  recorded[0]?.();
  await clock.advance(0);
  assert.deepEqual(happened, ["pulled a:1", "looked for a:1", "pulled a:1"]);
  assert.equal(isDone, true);
});
