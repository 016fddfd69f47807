import assert from "node:assert/strict";
import { test } from "node:test";
import { Leftovers, type Settle } from "./leftovers.ts";

/** A machine on which things come and go by hand, and a clock that moves with each look. */
function scene(): { things: Map<string, string | undefined>; leftovers: Leftovers; settle: Settle } {
  const things = new Map<string, string | undefined>([["mount /", undefined]]);
  let now = 0;
  const settle = {
    limitMs: 3,
    now: () => now,
    pause: () => {
      now++;
      return Promise.resolve();
    },
  };
  return { things, leftovers: new Leftovers(() => things), settle };
}

test("what carries a mark is its suite's, whoever else runs", async () => {
  const { things, leftovers, settle } = scene();
  leftovers.begin("a");
  leftovers.begin("b");
  things.set("mount /tmp/a/x", "a");
  things.set("process 7", "b");
  assert.deepEqual(await leftovers.end("a", settle), ["mount /tmp/a/x"]);
  things.delete("process 7");
  assert.deepEqual(await leftovers.end("b", settle), []);
});

test("what carries none is laid to those who ran when it appeared", async () => {
  const { things, leftovers, settle } = scene();
  leftovers.begin("a");
  things.set("network link one", undefined);
  leftovers.begin("b");
  things.set("network link two", undefined);
  await leftovers.end("a", settle);
  leftovers.begin("c");
  things.set("network link three", undefined);
  await leftovers.end("b", settle);
  await leftovers.end("c", settle);
  assert.deepEqual(await leftovers.rest(settle), [
    { what: "network link one", suspects: ["a"] },
    { what: "network link two", suspects: ["a", "b"] },
    { what: "network link three", suspects: ["b", "c"] },
  ]);
});

test("what goes in time, and what was there before, is nobody's", async () => {
  const { things, leftovers, settle } = scene();
  leftovers.begin("a");
  things.set("process 8", "a");
  things.set("network link one", undefined);
  const slow = { ...settle, pause: () => Promise.resolve(void things.delete("process 8")) };
  assert.deepEqual(await leftovers.end("a", slow), []);
  things.delete("network link one");
  assert.deepEqual(await leftovers.rest(settle), []);
});
