import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "./abort.ts";
import { runLoops, untilAborted } from "./loop.ts";

const waiting = { name: "waiting", run: untilAborted };

test("loops run until the stop", async () => {
  const stop = manyListeners();
  const running = runLoops([waiting, waiting], stop);
  stop.abort();
  await running;
});

test("a loop that fails ends the others and is the failure of all", async () => {
  const stop = manyListeners();
  const failing = { name: "failing", run: () => Promise.reject(new Error("broken")) };
  await assert.rejects(runLoops([waiting, failing], stop), /broken/);
  assert.ok(stop.signal.aborted);
});

test("a loop that returns before the stop is a failure", async () => {
  const early = { name: "early", run: () => Promise.resolve() };
  await assert.rejects(runLoops([waiting, early], manyListeners()), /loop "early" returned before the agent stopped/);
});
