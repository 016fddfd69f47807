import assert from "node:assert/strict";
import { test } from "node:test";
import { OwnStarts } from "./own-starts.ts";

test("a start is under way until it is answered, well or not", async () => {
  const starts = new OwnStarts();
  assert.equal(starts.of("a"), undefined);
  let answer: (error?: Error) => void = () => undefined;
  const call = new Promise<void>((resolve, reject) => {
    answer = (error) => (error === undefined ? resolve() : reject(error));
  });
  const followed = starts.follow("a", call);
  const waiting = starts.of("a");
  assert.ok(waiting !== undefined);
  answer(new Error("no"));
  await assert.rejects(followed, /no/);
  await waiting;
  assert.equal(starts.of("a"), undefined);
});
