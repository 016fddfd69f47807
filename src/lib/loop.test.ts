import assert from "node:assert/strict";
import { test } from "node:test";
import { manyListeners } from "./abort.ts";
import { runBeside, untilAborted } from "./loop.ts";

test("the end of the main part ends the one beside it", async () => {
  let isEnded = false;
  await runBeside(
    async () => undefined,
    async (signal) => {
      await untilAborted(signal);
      isEnded = true;
    },
    manyListeners(),
  );
  assert.ok(isEnded);
});

test("a failure of either part ends the other and is thrown", async () => {
  const wait = ({ signal }: { signal: AbortSignal }): Promise<void> => untilAborted(signal);
  const fail = (): Promise<void> => Promise.reject(new Error("failed"));
  await assert.rejects(runBeside(wait, fail, manyListeners()), /failed/);
  await assert.rejects(runBeside(fail, untilAborted, manyListeners()), /failed/);
});

test("an abort from outside ends both, and without a part beside it only the main one", async () => {
  const stop = manyListeners();
  const running = runBeside(({ signal }) => untilAborted(signal), untilAborted, stop);
  const alone = runBeside(({ signal }) => untilAborted(signal), undefined, stop);
  stop.abort();
  await Promise.all([running, alone]);
});
