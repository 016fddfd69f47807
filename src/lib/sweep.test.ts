import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "./clock.ts";
import { sweep } from "./sweep.ts";

/** A sweep of a to f, two at once, whose works end when the test says so. */
function swept(patienceMs = 1000) {
  const clock = new FakeClock();
  const stop = new AbortController();
  const begun: string[] = [];
  const ends = new Map<string, { resolve: (value: string) => void; reject: (error: Error) => void }>();
  const work = (name: string): Promise<string> => {
    begun.push(name);
    return new Promise((resolve, reject) => ends.set(name, { resolve, reject }));
  };
  const options = { clock, limit: 2, patienceMs, signal: stop.signal };
  const done = sweep(["a", "b", "c", "d", "e", "f"], work, options);
  done.catch(() => undefined);
  const end = async (...names: string[]): Promise<void> => {
    for (const name of names) {
      ends.get(name)?.resolve(name.toUpperCase());
      await clock.advance(0);
    }
  };
  return { clock, stop, begun, ends, done, end };
}

describe("a sweep", () => {
  test("works on as many at once as the limit, and answers in the order of the items", async () => {
    const { begun, done, end, clock } = swept();
    assert.deepEqual(begun, ["a", "b"]);
    await end("b");
    assert.deepEqual(begun, ["a", "b", "c"]);
    await end("c", "a", "d", "e", "f");
    assert.deepEqual(await done, ["A", "B", "C", "D", "E", "F"]);
    assert.equal(clock.waiting, 0);
  });

  test("lets one that hangs keep its place for a while only, and waits for it at the end", async () => {
    const { begun, done, end, clock } = swept();
    let isDone = false;
    void done.then(() => (isDone = true));
    await clock.advance(999);
    assert.deepEqual(begun, ["a", "b"]);
    await clock.advance(1);
    assert.deepEqual(begun, ["a", "b", "c", "d"]);
    await end("c", "d", "e", "f", "b");
    assert.equal(isDone, false);
    await end("a");
    assert.deepEqual(await done, ["A", "B", "C", "D", "E", "F"]);
  });

  test("begins no further ones after an abort", async () => {
    const { begun, done, end, stop } = swept();
    stop.abort(new Error("enough"));
    await end("a", "b");
    await assert.rejects(done, /enough/);
    assert.deepEqual(begun, ["a", "b"]);
  });

  test("begins no further ones after a failure, also of one that had lost its place", async () => {
    for (const afterMs of [0, 1000]) {
      const { begun, done, end, ends, clock } = swept();
      await clock.advance(afterMs);
      const before = [...begun];
      ends.get("a")?.reject(new Error("broken"));
      await clock.advance(0);
      await end("b", "c", "d");
      await assert.rejects(done, /broken/);
      assert.deepEqual(begun, before);
    }
  });

  test("of nothing is done", async () => {
    const options = { clock: new FakeClock(), limit: 2, patienceMs: 1, signal: new AbortController().signal };
    assert.deepEqual(await sweep([], () => Promise.reject(new Error("called")), options), []);
  });
});
